"""The compiled loop of a run: steps, and what is recorded of some."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Int, PyTree

from equistein._types import Key, LogDensity, Scalar
from equistein.samplers._advance import advance_watched
from equistein.samplers._base import AbstractSampler
from equistein.samplers._minibatched import of_step
from equistein.samplers._when_due import when_due

CHUNK = 64
"""Steps between two looks at whether all numbers are finite."""


class Progress(eqx.Module):
    """The state of a run, and the last one known to be finite."""

    state: PyTree
    good: PyTree
    converged: Bool[Array, "*run"]
    failed: Bool[Array, "*run"]


def _steps_recorded(
    key: Key,
    sampler: AbstractSampler,
    log_density: LogDensity,
    progress: Progress,
    ends: Int[Array, " record"],
    tol: float | None,
    keep: int,
) -> tuple[Progress, dict[str, Array], Bool[Array, " record"]]:
    """Step to each of `ends` in turn and record the info of the last step before it."""
    arrays_of = lambda tree: eqx.filter(tree, eqx.is_array)

    def unrecorded_steps(progress, end):
        state = progress.state
        last = jnp.minimum(state.step + CHUNK, end - 1)
        state, converged = advance_watched(key, sampler, log_density, state, last, tol)
        return _judged(progress, state, converged)

    def recorded_step(key, sampler, log_density, progress):
        state = progress.state
        step_key, density = of_step(jr.fold_in(key, state.step), log_density)
        state, info = sampler.step(step_key, state, density)
        converged = progress.converged
        if tol is not None:
            converged = converged | (info.update_norm < tol)
        record = {"step": state.step} | vars(info)
        if keep:
            record["particles"] = state.particles[:keep]
        return arrays_of(_judged(progress, state, converged, info.log_density)), record

    def segment(progress, end):
        progress = jax.lax.while_loop(
            lambda p: (p.state.step < end - 1) & ~p.converged & ~p.failed,
            lambda p: unrecorded_steps(p, end),
            progress,
        )
        # A run that converged on the way takes one more step, the one to record.
        go_on = (progress.state.step < end) & ~progress.failed
        given = key, sampler, log_density, progress
        blank = jax.tree.map(
            lambda leaf: jnp.zeros(leaf.shape, leaf.dtype),
            eqx.filter_eval_shape(recorded_step, *given)[1],
        )
        before = arrays_of(progress), blank
        arrays, info = when_due(go_on, recorded_step, before, *given)
        progress = eqx.combine(arrays, progress)
        return progress, (info, go_on & ~progress.failed)

    def unless_over(progress, end):
        over = progress.converged | progress.failed
        return segment(progress, jnp.where(over, progress.state.step, end))

    progress, (info, valid) = jax.lax.scan(unless_over, progress, ends)
    return progress, info, valid


record_steps = eqx.filter_jit(_steps_recorded)
record_steps_of_many = eqx.filter_jit(
    eqx.filter_vmap(
        _steps_recorded, in_axes=(0, None, None, eqx.if_array(0), None, None, None)
    )
)


def _judged(
    progress: Progress,
    state: PyTree,
    converged: Bool[Array, ""],
    log_density: Scalar | float = 0.0,
) -> Progress:
    """Keep `state` as the last good one if all is finite; otherwise the run failed."""
    finite = jnp.all(jnp.isfinite(state.particles)) & jnp.isfinite(log_density)
    good = jax.tree.map(
        lambda new, old: jnp.where(finite, new, old), state, progress.good
    )
    return Progress(state, good, converged & finite, ~finite)
