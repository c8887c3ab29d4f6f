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
    """How far a run is: the last state known to be finite, and whether it is over.

    A call keeps the one before it, to go back to. A failed run has no other state: it
    takes no more steps.
    """

    state: PyTree
    converged: Bool[Array, "*run"]
    failed: Bool[Array, "*run"]


class _Watched(eqx.Module):
    """The state within a call, and the last one known to be finite."""

    state: PyTree
    good: PyTree
    converged: Bool[Array, ""]
    failed: Bool[Array, ""]


def _steps_recorded(
    progress: Progress,
    key: Key,
    sampler: AbstractSampler,
    log_density: LogDensity,
    ends: Int[Array, " record"],
    tol: float | None,
    keep: int,
) -> tuple[Progress, dict[str, Array], Bool[Array, " record"]]:
    """Step to each of `ends` in turn and record the info of the last step before it."""
    arrays_of = lambda tree: eqx.filter(tree, eqx.is_array)

    def unrecorded_steps(watched, end):
        state = watched.state
        last = jnp.minimum(state.step + CHUNK, end - 1)
        state, converged = advance_watched(key, sampler, log_density, state, last, tol)
        return _judged(watched, state, converged)

    def recorded_step(watched):
        state = watched.state
        step_key, density = of_step(jr.fold_in(key, state.step), log_density)
        state, info = sampler.step(step_key, state, density)
        converged = watched.converged
        if tol is not None:
            converged = converged | (info.update_norm < tol)
        watched = _judged(watched, state, converged, info.log_density)
        record = {"step": state.step} | vars(info)
        if keep:
            record["particles"] = watched.good.particles[:keep]
        return arrays_of(watched), record

    def segment(watched, end):
        watched = jax.lax.while_loop(
            lambda w: (w.state.step < end - 1) & ~w.converged & ~w.failed,
            lambda w: unrecorded_steps(w, end),
            watched,
        )
        # A run that converged on the way takes one more step, the one to record.
        go_on = (watched.state.step < end) & ~watched.failed
        blank = jax.tree.map(
            lambda leaf: jnp.zeros(leaf.shape, leaf.dtype),
            eqx.filter_eval_shape(recorded_step, watched)[1],
        )
        before = arrays_of(watched), blank
        arrays, info = when_due(go_on, lambda: recorded_step(watched), before)
        watched = eqx.combine(arrays, watched)
        return watched, (info, go_on & ~watched.failed)

    def unless_over(watched, end):
        over = watched.converged | watched.failed
        return segment(watched, jnp.where(over, watched.state.step, end))

    state = progress.state
    watched = _Watched(state, state, progress.converged, progress.failed)
    watched, (info, valid) = jax.lax.scan(unless_over, watched, ends)
    return Progress(watched.good, watched.converged, watched.failed), info, valid


record_steps = eqx.filter_jit(_steps_recorded)
record_steps_of_many = eqx.filter_jit(
    eqx.filter_vmap(
        _steps_recorded, in_axes=(eqx.if_array(0), 0, None, None, None, None, None)
    )
)


def _judged(
    watched: _Watched,
    state: PyTree,
    converged: Bool[Array, ""],
    log_density: Scalar | float = 0.0,
) -> _Watched:
    """Keep `state` as the last good one if all is finite; otherwise the run failed."""
    finite = jnp.all(jnp.isfinite(state.particles)) & jnp.isfinite(log_density)
    good = jax.tree.map(
        lambda new, old: jnp.where(finite, new, old), state, watched.good
    )
    return _Watched(state, good, converged & finite, ~finite)
