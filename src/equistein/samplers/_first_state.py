"""Where runs begin: the state of new particles, or one to go on from."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from equistein._arrays import check_particles
from equistein._types import Keys, LogDensity, Particles
from equistein.samplers._base import AbstractSampler
from equistein.samplers._checks import check_state


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


def of_runs(runs: int | None, function: Callable) -> Callable:
    """Return a function of the state of a run as one of the states of all runs."""
    return function if runs is None else eqx.filter_vmap(function)


def first_state(
    runs: int | None,
    sampler: AbstractSampler,
    log_density: LogDensity,
    particles: Particles | None,
    initial_state: PyTree | None,
) -> PyTree:
    """Return the state to go on from, or that of new particles; both are checked.

    Raises:
        ValueError: If there is none, both, or one that does not fit.
    """
    if initial_state is not None:
        if particles is not None:
            raise ValueError(
                "`run` got `initial_state` and also `particles`, which the state "
                "holds: give one or the other."
            )
        return _renewed(runs, sampler, log_density, initial_state)
    particles = check_particles(particles, "particles")
    shape = particles.shape if runs is None else particles.shape[1:]
    if runs is not None and (len(shape) < 2 or len(particles) != runs):
        raise ValueError(
            f"`run` got {runs} keys, and so needs `particles` of shape ({runs}, n, "
            f"*shape), but they have shape {particles.shape}. To begin all runs at the "
            f"same particles, give jnp.stack([particles] * {runs})."
        )
    sampler.check_shape(shape[1:])
    return eqx.filter_jit(of_runs(runs, sampler.init))(particles)


def _renewed(
    runs: int | None, sampler: AbstractSampler, log_density: LogDensity, state: PyTree
) -> PyTree:
    """Return a state to go on from, with values of this density.

    Raises:
        ValueError: If it is that of another sampler, or of another number of runs.
    """
    step = getattr(state, "step", None)
    shape = () if runs is None else (runs,)
    if getattr(step, "shape", shape) != shape:
        raise ValueError(
            "`initial_state` must be of as many runs as there are keys: "
            f"{_count(shape)}, but it is of {_count(step.shape)}."  # type: ignore
        )
    one = state if runs is None else run_of(state, 0)
    check_state(sampler, one)
    return of_runs(runs, lambda state: sampler.renewed(state, log_density))(state)


def run_of(tree: PyTree, index: int) -> PyTree:
    """Return the part of one run, of what has a leading axis of runs."""
    return jax.tree.map(lambda leaf: leaf[index] if eqx.is_array(leaf) else leaf, tree)


def _count(shape: tuple[int, ...]) -> str:
    return f"{shape[0]} runs" if shape else "one run"
