"""Checks of what `run` is given."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from equistein._limits import check_made, MOST
from equistein._numbers import is_integer
from equistein._types import LogDensity, Particles
from equistein.samplers._base import AbstractSampler

_RECORD = 128  # bytes of a record without particles, about
_COPIES = 2  # of the history, while its parts are joined


def check_counts(num_steps: Any, tol: Any, record_every: Any, keep: Any) -> None:
    """Raise unless the counts of a run are what they should be.

    Raises:
        ValueError: If one is not, naming it.
    """
    if not is_integer(num_steps) or not 0 <= num_steps <= MOST:
        raise ValueError(
            f"`run` needs `num_steps`, an integer from 0 to {MOST:.0e}, but got "
            f"{num_steps!r}. For more, go on with `initial_state=samples.state`."
        )
    if tol is not None and not tol > 0:
        raise ValueError(f"`run` needs `tol` > 0 or None, but got {tol!r}.")
    if record_every is not None and not (is_integer(record_every) and record_every > 0):
        raise ValueError(
            "`run` needs `record_every`, an integer > 0 or None, but got "
            f"{record_every!r}."
        )
    if not is_integer(keep) or keep < 0:
        raise ValueError(f"`run` needs `keep`, an integer >= 0, but got {keep!r}.")


def check_history(
    state: Any, runs: int | None, num_steps: int, every: int, keep: int
) -> None:
    """Raise unless what a run will record fits into memory.

    Raises:
        LimitError: If it does not, with an estimate.
    """
    particles = state.particles if runs is None else state.particles[0]
    records = -(-num_steps // every)
    kept = min(keep, len(particles)) * particles[0].nbytes
    needed = _COPIES * (runs or 1) * records * (_RECORD + kept)
    check_made(
        f"The history of `run`, {records} records of {keep} particles", needed,
        "give a larger `record_every` or a smaller `keep`",
    )  # fmt: skip


def check_ring(mesh: Mesh | None, runs: int | None) -> None:
    """Raise unless there are devices to form a ring, and one run.

    Raises:
        ValueError: If there are none, or several runs.
    """
    if mesh is None or runs is not None:
        raise ValueError(
            "`ring` is for one run on a `mesh` of devices, such as es.device_mesh(): "
            "give `mesh`, and one key."
        )


def check_state(sampler: AbstractSampler, state: Any) -> None:
    """Raise unless a state is one that the sampler can go on from.

    Raises:
        ValueError: If it is not.
    """
    try:
        expected = eqx.filter_eval_shape(sampler.init, state.particles)
        fits = jax.tree.structure(expected) == jax.tree.structure(state)
    except (AttributeError, TypeError, ValueError):
        fits = False
    if not fits:
        raise ValueError(
            "`initial_state` must be the `state` of samples of the same kind of "
            "sampler and optimizer; start anew with `particles` to change them."
        )


def check_density(
    log_density: LogDensity, particles: Particles, name: str
) -> np.ndarray:
    """Return the scores; raise unless the density is a scalar, finite at the start.

    Raises:
        ValueError: If it does not, with the shape or the first bad particle.
    """
    if not callable(log_density):
        raise ValueError(
            f"`log_density` must be a function of one point, but got {log_density!r}. "
            "Of a target, give `target.log_density`."
        )
    point = jax.ShapeDtypeStruct(particles.shape[1:], particles.dtype)
    wanted = (
        f"`log_density` must take one point, here of shape {point.shape}, and return a "
        "scalar"
    )
    remedy = "The sampler vectorizes it over particles; reduce over the point's axes."
    try:
        value = eqx.filter_eval_shape(log_density, point)
    except Exception as error:
        message = f"{wanted}, but failed: {error} {remedy}"
        raise ValueError(message) from error
    if not isinstance(value, jax.ShapeDtypeStruct):
        raise ValueError(f"{wanted}, but it returned {value!r}. {remedy}")
    if value.shape != () or not jnp.issubdtype(value.dtype, jnp.floating):
        raise ValueError(
            f"{wanted}, but it returned shape {value.shape} of type {value.dtype}. "
            f"{remedy}"
        )
    try:
        values, scores = map(np.asarray, _values_and_scores(log_density, particles))
    except (RuntimeError, ValueError) as error:
        reason = raised_in_python(error)
        if reason is None:
            raise
        if is_interrupt(reason):
            raise KeyboardInterrupt from None
        raise ValueError(f"`log_density` raised at the start: {reason}") from None
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


def raised_in_python(error: Exception) -> str | None:
    """Return what Python raised below compiled code; None for any other error."""
    told = str(error).strip()
    return told.split("\n")[-1] if "CpuCallback error" in told else None


def is_interrupt(reason: str) -> bool:
    """Whether what Python raised is Ctrl-C, which came while it was called."""
    return reason.startswith("KeyboardInterrupt")


@eqx.filter_jit
def _values_and_scores(log_density, particles):
    return jax.vmap(jax.value_and_grad(log_density))(particles)
