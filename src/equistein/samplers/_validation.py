"""Checks of where `run` starts, and points that are trees as flat ones."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from equistein._arrays import check_particles, on_device
from equistein._sharding import fetch
from equistein._types import Keys, LogDensity, Particles, Point, Scalar
from equistein.samplers._base import AbstractSampler
from equistein.samplers._markov_chains import AbstractMarkovChains, AbstractPathSampler

_FEWEST = 8  # particles where the density is positive, at the start


def count_runs(key: Keys) -> int | None:
    """Return how many runs the keys are for, None for a single key."""
    single = 0 if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) else 1
    axes = key.shape[: key.ndim - single]
    if len(axes) > 1 or 0 in axes:
        raise ValueError(
            "`run` needs `key`, one or an array of them such as jr.split(key, 5), but "
            f"got keys of shape {axes}."
        )
    return axes[0] if axes else None


def check_start(
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
        raise ValueError(
            "`initial_state` must be of as many runs as there are keys: its steps have "
            f"shape {step.shape}, the keys {shape}."  # type: ignore
        )
    try:
        first = lambda state: state if runs is None else select_run(state, 0)
        one = eqx.filter_eval_shape(first, state)
        expected = state_like(sampler, one.particles)
        fits = jax.tree.structure(expected) == jax.tree.structure(one)
    except (AttributeError, TypeError, ValueError):
        fits = False
    if not fits:
        raise ValueError(
            "`initial_state` must be the `state` of samples of the same kind of "
            "sampler and optimizer; to change them, start from `particles`."
        )


def check_stored_values(stored: np.ndarray, values: np.ndarray) -> None:
    """Raise `ValueError` if a state holds values of another density than these.

    Values computed elsewhere may differ by rounding; NaN is unknown.
    """
    tolerance = float(jnp.finfo(values.dtype).eps) ** 0.5
    scale = np.max(np.abs(values), initial=1.0)
    same = np.isclose(values, stored, rtol=tolerance, atol=tolerance * scale)
    if not np.all(same | np.isnan(stored)):
        raise ValueError(
            "`initial_state` holds values of another `log_density`: start from its "
            "particles, `particles=state.particles`."
        )


def state_like(
    sampler: AbstractSampler, particles: Any, runs: int | None = None
) -> Any:
    """Return the shapes of a sampler's state, whatever the density."""
    flat = lambda point: 0 * jnp.sum(point)
    init = vmap_over_runs(runs, lambda particles: sampler.init(particles, flat))
    return eqx.filter_eval_shape(init, particles)


def vmap_over_runs(runs: int | None, function: Any) -> Any:
    """Return a function vmapped over runs, if there are several."""
    return function if runs is None else eqx.filter_vmap(function)


def merge_runs(num_runs: int | None, particles: Any) -> Any:
    """Return the particles of all runs, stacked on axis 0."""
    if num_runs is None:
        return particles
    x = particles if isinstance(particles, Tracer) else np.asarray(particles)
    return on_device(x.reshape(-1, *x.shape[2:]))


def select_run(tree: PyTree, index: int) -> PyTree:
    """Return the part of one run of a tree with a leading axis of runs."""
    is_array = lambda leaf: isinstance(leaf, jax.Array | np.ndarray)
    own = lambda leaf: on_device(leaf[index]) if is_array(leaf) else leaf
    return jax.tree.map(own, tree)


def check_signature(log_density: LogDensity, particles: Any) -> None:
    """Raise `ValueError` unless the density maps one point to a scalar."""
    point = jax.ShapeDtypeStruct(particles.shape[1:], particles.dtype)
    text = (
        f"`log_density` must take one point, here of shape {point.shape}, and return a "
        "scalar, but {}. Reduce over the point's axes."
    )
    try:
        value = eqx.filter_eval_shape(log_density, point)
    except Exception as error:
        raise ValueError(text.format(f"failed: {error}")) from error
    scalar = isinstance(value, jax.ShapeDtypeStruct) and value.shape == ()
    if not scalar or not jnp.issubdtype(value.dtype, jnp.floating):
        raise ValueError(text.format(f"it returned {value}"))


def check_finite(values: np.ndarray, scores: np.ndarray) -> None:
    """Raise `ValueError` unless the values and scores of all particles are finite."""
    axes = tuple(range(1, scores.ndim))
    bad = ~(np.isfinite(values) & np.all(np.isfinite(scores), axis=axes))
    if np.any(bad):
        index = int(np.argmax(bad))
        raise ValueError(
            "`log_density` and its gradient must be finite at the start, but at "
            f"{np.sum(bad)} of {len(values)} particles they are not: at index "
            f"{index} the value is {float(values[index]):.6g} and the gradient "
            f"{scores[index]}. Start where the density is positive and smooth."
        )


def particles_inside(
    sampler: AbstractSampler, particles: Any, values: Any
) -> tuple[Particles, tuple[str, ...]]:
    """Return the particles where the density is not zero, and a warning if some are.

    Chains, which do not interact, begin there several times instead.
    """
    zero = np.asarray(values) == -np.inf
    num = np.sum(~zero)
    if not np.any(zero) or num < _FEWEST:
        return particles, ()
    index = np.flatnonzero(~zero)
    if isinstance(sampler, AbstractMarkovChains | AbstractPathSampler):
        index = np.resize(index, len(zero))
    text = (
        f"`log_density` is minus infinity at {np.sum(zero)} of {len(zero)} particles "
        f"at the start: the run begins at the other {num}."
    )
    return on_device(np.asarray(fetch(particles))[index]), (text,)


class CallbackError(ValueError):
    """Python code that compiled code called raised an error."""


@contextlib.contextmanager
def callback_errors() -> Iterator[None]:
    """Turn JAX's error for a failed callback into a `CallbackError`."""
    try:
        yield
    except (RuntimeError, ValueError) as error:
        text = str(error).strip()
        if "CpuCallback error" not in text:
            raise
        # What follows the frames of the traceback, whose lines are indented.
        reason = text.rpartition("\n  ")[2].partition("\n")[2] or text
        if reason.startswith("KeyboardInterrupt"):
            raise KeyboardInterrupt from None
        raise CallbackError(f"`log_density` raised an error: {reason}") from None


class TreeDensity(eqx.Module):
    """The log density of a tree, as one of a flat point; equal ones compile once."""

    log_density: Callable[[PyTree], Scalar]
    of_numbers: Callable[[Point], PyTree] = eqx.field(static=True)
    rest: PyTree = eqx.field(static=True)

    def unflatten(self, point: Point) -> PyTree:
        return eqx.combine(self.of_numbers(point), self.rest)

    def __call__(self, point: Point) -> Scalar:
        return self.log_density(self.unflatten(point))


def is_tree(particles: Any) -> bool:
    """Return whether particles are a tree of arrays, and not one or a list of lists."""
    arrays = [isinstance(x, jax.Array | np.ndarray) for x in jax.tree.leaves(particles)]
    return any(arrays) and not isinstance(particles, jax.Array | np.ndarray)


def flatten_trees(
    log_density: Callable[[PyTree], Scalar], trees: PyTree, num_axes: int
) -> tuple[TreeDensity, Float[Array, "*batch dim"]]:
    """Return a density of flat points, and the points of trees stacked on some axes."""
    trees, rest = eqx.partition(trees, eqx.is_array_like)  # rest: as an activation
    leaves = jax.tree.leaves(trees)
    batches = {np.shape(leaf)[:num_axes] for leaf in leaves}
    kinds = sorted({str(jnp.result_type(leaf)) for leaf in leaves})
    floats = all(jnp.issubdtype(jnp.result_type(x), jnp.floating) for x in leaves)
    if len(batches) > 1 or not floats:
        raise ValueError(
            "`particles` that are a tree need floating-point arrays, stacked on axis 0 "
            f"alike, but have shapes {[np.shape(leaf) for leaf in leaves]} of "
            f"{', '.join(kinds)}. `eqx.partition` sets constants apart."
        )
    batch = batches.pop()
    dtype = jnp.result_type(leaves[0] if len(kinds) == 1 else float)
    flat = [jnp.asarray(x, dtype).reshape(*batch, -1) for x in leaves]
    zeros = lambda leaf: jnp.zeros(leaf.shape[num_axes:], dtype)
    _, unflatten = ravel_pytree(jax.tree.map(zeros, trees))
    return TreeDensity(log_density, unflatten, rest), jnp.concatenate(flat, axis=-1)
