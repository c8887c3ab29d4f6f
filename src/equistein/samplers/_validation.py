"""Checks of the arguments of `run`, and of the state it continues from."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from equistein._arrays import check_particles
from equistein._limits import check_made, MOST
from equistein._numbers import is_integer
from equistein._types import Keys, LogDensity, Particles
from equistein.samplers._base import AbstractSampler
from equistein.samplers._callback_errors import callback_errors, CallbackError
from equistein.samplers._minibatched import Minibatched

_RECORD = 128  # bytes of a record without particles, about
_COPIES = 2  # of the history, while its parts are joined


@dataclasses.dataclass(frozen=True)
class Schedule:
    """How long a run is and what it records; see `run`."""

    num_steps: int
    tol: float | None
    record_every: int | None
    keep: int

    def __post_init__(self):
        num_steps, every, keep = self.num_steps, self.record_every, self.keep
        if not is_integer(num_steps) or not 0 <= num_steps <= MOST:
            raise ValueError(
                f"`run` needs `num_steps`, an integer from 0 to {MOST:.0e}, but got "
                f"{num_steps!r}. For more, continue with `initial_state=samples.state`."
            )
        if self.tol is not None and not self.tol > 0:
            raise ValueError(f"`run` needs `tol` > 0 or None, but got {self.tol!r}.")
        if every is not None and not (is_integer(every) and every > 0):
            raise ValueError(
                f"`run` needs `record_every`, an integer > 0 or None, but got {every!r}"
            )
        if not is_integer(keep) or keep < 0:
            raise ValueError(f"`run` needs `keep`, an integer >= 0, but got {keep!r}.")

    def check_history(self, particles: Array, runs: int | None, every: int) -> None:
        """Raise `LimitError` unless what a run will record fits into memory."""
        particles = particles if runs is None else particles[0]
        records = -(-self.num_steps // every)
        recorded = min(self.keep, len(particles)) * particles[0].nbytes
        check_made(
            f"The history of `run`, {records} records of {self.keep} particles",
            _COPIES * (runs or 1) * records * (_RECORD + recorded),
            "give a larger `record_every` or a smaller `keep`",
        )


def check_sampler(sampler: Any, log_density: Any) -> None:
    """Raise `ValueError` unless the sampler is one, and takes such a density."""
    if not isinstance(sampler, AbstractSampler):
        raise ValueError(
            "`sampler` must be one such as SVGD(kernel, optimizer), but got "
            f"{sampler!r}."
        )
    if not callable(log_density):
        raise ValueError(
            f"`log_density` must be a function of one point, but got {log_density!r}. "
            "Of a target, give `target.log_density`."
        )
    if isinstance(log_density, Minibatched) and not sampler.takes_batches:
        raise ValueError(
            f"{type(sampler).__name__} needs the same `log_density` in each step, not "
            "that of a batch: take SVGD or Langevin, or give all data, "
            "`lambda x: posterior(x)`."
        )


def num_runs(key: Keys) -> int | None:
    """Return how many runs the keys are for, None for a key that is one.

    Raises:
        ValueError: If they are not stacked on one axis.
    """
    single = 0 if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) else 1
    axes = list(key.shape[: key.ndim - single])
    if not axes:
        return None
    if len(axes) > 1 or not axes[0]:
        raise ValueError(
            "`run` needs `key`, one or an array of them such as jr.split(key, 5), but "
            f"got keys of shape {tuple(axes)}."
        )
    return axes[0]


def checked_start(
    runs: int | None, sampler: AbstractSampler, particles: Any
) -> Particles:
    """Return the particles; raise `ValueError` unless they suit the sampler."""
    particles = check_particles(particles, "particles")
    shape = particles.shape if runs is None else particles.shape[1:]
    if runs is not None and (len(shape) < 2 or len(particles) != runs):
        raise ValueError(
            f"`run` got {runs} keys, and so needs `particles` of shape ({runs}, n, "
            f"*shape), but they have shape {particles.shape}. To begin all runs at the "
            f"same particles, give jnp.stack([particles] * {runs})."
        )
    sampler.check_shape(shape[1:])
    return particles


def check_state(runs: int | None, sampler: AbstractSampler, state: PyTree) -> None:
    """Raise `ValueError` unless the sampler can continue from a state."""
    step = getattr(state, "step", None)
    shape = () if runs is None else (runs,)
    if getattr(step, "shape", shape) != shape:
        count = lambda shape: f"{shape[0]} runs" if shape else "one run"
        raise ValueError(
            "`initial_state` must be of as many runs as there are keys: "
            f"{count(shape)}, but it is of {count(step.shape)}."  # type: ignore
        )
    one = state if runs is None else run_of(state, 0)
    try:
        expected = state_like(sampler, one.particles)
        fits = jax.tree.structure(expected) == jax.tree.structure(one)
    except (AttributeError, TypeError, ValueError):
        fits = False
    if not fits:
        raise ValueError(
            "`initial_state` must be the `state` of samples of the same kind of "
            "sampler and optimizer; to change them, start from `particles`."
        )


def check_values(
    stored: np.ndarray | None, log_density: LogDensity, particles: Particles
) -> None:
    """Raise `ValueError` if a state holds values of another density.

    Values computed elsewhere may differ by rounding; NaN is unknown.
    """
    if stored is None:
        return
    values = _values(log_density, particles)
    values = np.where(np.isfinite(values), values, -np.inf)
    tolerance = float(jnp.finfo(values.dtype).eps) ** 0.5
    scale = np.max(np.abs(values), where=np.isfinite(values), initial=1.0)
    same = np.isclose(values, stored, rtol=tolerance, atol=tolerance * scale)
    same = same | np.isnan(stored)
    if not np.all(same):
        raise ValueError(
            "`initial_state` holds values of another `log_density`: start from its "
            "particles, `particles=state.particles`."
        )


def state_like(
    sampler: AbstractSampler, particles: Particles, runs: int | None = None
) -> PyTree:
    """Return the shapes of a sampler's state, whatever the density."""
    flat = lambda point: 0 * jnp.sum(point)
    init = of_runs(runs, lambda particles: sampler.init(particles, flat))
    return eqx.filter_eval_shape(init, particles)


def of_runs(runs: int | None, function: Any) -> Any:
    """Return a function of one run's state as one of the states of all runs."""
    return function if runs is None else eqx.filter_vmap(function)


def run_of(tree: PyTree, index: int) -> PyTree:
    """Return the part of one run, of what has a leading axis of runs."""
    return jax.tree.map(lambda leaf: leaf[index] if eqx.is_array(leaf) else leaf, tree)


def check_signature(log_density: LogDensity, particles: Particles) -> None:
    """Raise `ValueError` unless the density maps one point to a scalar."""
    point = jax.ShapeDtypeStruct(particles.shape[1:], particles.dtype)
    expected = (
        f"`log_density` must take one point, here of shape {point.shape}, and return a "
        "scalar"
    )
    remedy = "The sampler vectorizes it over particles; reduce over the point's axes."
    try:
        value = eqx.filter_eval_shape(log_density, point)
    except Exception as error:
        message = f"{expected}, but failed: {error} {remedy}"
        raise ValueError(message) from error
    if not isinstance(value, jax.ShapeDtypeStruct):
        raise ValueError(f"{expected}, but it returned {value!r}. {remedy}")
    if value.shape != () or not jnp.issubdtype(value.dtype, jnp.floating):
        raise ValueError(
            f"{expected}, but it returned shape {value.shape} of type {value.dtype}. "
            f"{remedy}"
        )


def check_density(
    log_density: LogDensity, particles: Particles, name: str
) -> np.ndarray:
    """Return the scores; raise `ValueError` unless all are finite at the start."""
    check_signature(log_density, particles)
    try:
        with callback_errors():
            values, scores = map(np.asarray, _values_and_scores(log_density, particles))
    except CallbackError as error:
        raise ValueError(f"`log_density` raised at the start: {error}") from None
    axes = tuple(range(1, scores.ndim))
    bad = ~(np.isfinite(values) & np.all(np.isfinite(scores), axis=axes))
    if np.any(bad):
        index = int(np.argmax(bad))
        raise ValueError(
            "`log_density` and its gradient must be finite at the start, but at "
            f"{np.sum(bad)} of {len(particles)} {name} they are not: at index "
            f"{index} the value is {float(values[index]):.6g} and the gradient "
            f"{scores[index]}. Start where the density is positive and smooth."
        )
    return scores


@eqx.filter_jit
def _values_and_scores(log_density, particles):
    return jax.vmap(jax.value_and_grad(log_density))(particles)


@eqx.filter_jit
def _values(log_density, particles):
    return jax.vmap(log_density)(particles)
