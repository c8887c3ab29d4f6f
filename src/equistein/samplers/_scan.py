"""The compiled loops over steps: `advance`, and the one of `run`, which records."""

from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Int, PyTree

from equistein._gate import keyed
from equistein._types import Key, LogDensity, Scalar
from equistein.samplers._base import AbstractSampler, cond_if_any

State = TypeVar("State")

CHECK_EVERY = 64
"""Steps between two checks that all numbers are finite."""


@keyed
@eqx.filter_jit
def advance(
    key: Key,
    sampler: AbstractSampler,
    log_density: LogDensity,
    state: State,
    until: int | Int[Array, ""],
    tol: float | Scalar | None = None,
) -> State:
    """Take steps until the state is the one after step number `until`.

    One compiled loop, for use inside other compiled code too. Nothing is checked and
    nothing recorded.

    Args:
        key: The source of randomness; step i uses `fold_in(key, i)`.
        sampler: Any sampler.
        log_density: The unnormalized log density of one point.
        state: The state to continue from, such as `sampler.init(particles,
            log_density)`.
        until: The number of the last step, which may be traced.
        tol: Stop once the root mean square update is below this; None takes all steps.
    """
    return _advance(key, sampler, log_density, state, until, tol)[0]


class RunStatus(eqx.Module):
    """The last state known to be finite, and whether the run has ended."""

    state: PyTree
    converged: Bool[Array, "*run"]
    failed: Bool[Array, "*run"]


class _Carry(eqx.Module):
    """The state inside the loop, and the last one known to be finite."""

    state: PyTree
    good: PyTree
    converged: Bool[Array, ""]
    failed: Bool[Array, ""]


def _record_steps(
    status: RunStatus,
    key: Key,
    sampler: AbstractSampler,
    log_density: LogDensity,
    ends: Int[Array, " record"],
    tol: float | None,
    keep: int,
) -> tuple[RunStatus, dict[str, Array], Bool[Array, " record"]]:
    """Step until the number of steps is each of `ends`, and record that last step.

    Returns the status, the records, and which of the records were made.
    """
    arrays_of = lambda tree: eqx.filter(tree, eqx.is_array)

    def unrecorded_steps(carry, end):
        state = carry.state
        last = jnp.minimum(state.step + CHECK_EVERY, end - 1)
        state, converged = _advance(key, sampler, log_density, state, last, tol)
        return _carry_if_finite(carry, state, converged)

    def recorded_step(carry):
        state, info = _step(key, sampler, log_density, carry.state)
        converged = carry.converged
        if tol is not None:
            converged = converged | (info.update_norm < tol)
        carry = _carry_if_finite(carry, state, converged, info.log_density)
        record = {"step": state.step} | vars(info)
        if keep:
            record["particles"] = carry.good.particles[:keep]
        return arrays_of(carry), record

    def segment(carry, end):
        carry = jax.lax.while_loop(
            lambda c: (c.state.step < end - 1) & ~c.converged & ~c.failed,
            lambda c: unrecorded_steps(c, end),
            carry,
        )
        # A run that converged on the way takes one more step, the one to record.
        due = (carry.state.step < end) & ~carry.failed
        blank = jax.tree.map(
            lambda leaf: jnp.zeros(leaf.shape, leaf.dtype),
            eqx.filter_eval_shape(recorded_step, carry)[1],
        )
        unchanged = arrays_of(carry), blank
        arrays, record = cond_if_any(due, lambda: recorded_step(carry), unchanged)
        carry = eqx.combine(arrays, carry)
        return carry, (record, due & ~carry.failed)

    def segment_if_running(carry, end):
        ended = carry.converged | carry.failed
        return segment(carry, jnp.where(ended, carry.state.step, end))

    state = status.state
    carry = _Carry(state, state, status.converged, status.failed)
    carry, (records, made) = jax.lax.scan(segment_if_running, carry, ends)
    return RunStatus(carry.good, carry.converged, carry.failed), records, made


record_steps = eqx.filter_jit(_record_steps)
record_steps_of_runs = eqx.filter_jit(
    eqx.filter_vmap(
        _record_steps, in_axes=(eqx.if_array(0), 0, None, None, None, None, None)
    )
)


def _advance(
    key: Key,
    sampler: AbstractSampler,
    log_density: LogDensity,
    state: State,
    until: int | Int[Array, ""],
    tol: float | Scalar | None,
) -> tuple[State, Bool[Array, ""]]:
    """Take steps until number `until`, or until converged: an update below `tol`.

    Without `tol` the infos are not used, and the compiler removes them.
    """
    never = jnp.zeros((), bool)
    taken: Array = state.step  # type: ignore[attr-defined]
    until = jnp.asarray(until, taken.dtype)
    if tol is None:
        body = lambda _, state: _step(key, sampler, log_density, state)[0]
        return jax.lax.fori_loop(taken, until, body, state), never

    def unfinished(carry):
        state, converged = carry
        return (state.step < until) & ~converged

    def body_with_info(carry):
        state, info = _step(key, sampler, log_density, carry[0])
        return state, info.update_norm < tol

    return jax.lax.while_loop(unfinished, body_with_info, (state, never))


def _step(key: Key, sampler: AbstractSampler, log_density: LogDensity, state: PyTree):
    return sampler.step(jr.fold_in(key, state.step), state, log_density)


def _carry_if_finite(
    carry: _Carry,
    state: PyTree,
    converged: Bool[Array, ""],
    log_density: Scalar | float = 0.0,
) -> _Carry:
    """Keep `state` as the last good one if all is finite; otherwise the run failed."""
    finite = jnp.all(jnp.isfinite(state.particles)) & jnp.isfinite(log_density)
    good = jax.tree.map(lambda new, old: jnp.where(finite, new, old), state, carry.good)
    return _Carry(state, good, converged & finite, ~finite)
