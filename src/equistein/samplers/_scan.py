"""The compiled loops over steps: `advance`, and the one of `run`, which records."""

from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Int, PyTree

from equistein._check_arguments import accept_integer_key
from equistein._types import Key, LogDensity, Scalar
from equistein.samplers._base import AbstractSampler, cond_if_any_run

State = TypeVar("State")

CHECK_EVERY = 64
"""Steps between two checks that the particles are finite."""


@accept_integer_key
@eqx.filter_jit
def advance(
    key: Key,
    sampler: AbstractSampler,
    log_density: LogDensity,
    state: State,
    until: int | Int[Array, ""],
    tol: float | Scalar | None = None,
) -> State:
    """Take steps until `state.step` equals `until`, or until converged.

    One compiled loop, in which nothing is checked or recorded.

    Args:
        key: The source of randomness; step i, from 1, uses `fold_in(key, i - 1)`.
        sampler: Any sampler.
        log_density: The unnormalized log density of one point.
        state: Such as `sampler.init(particles, log_density)`.
        until: The number of the last step, which may be traced.
        tol: Stop once the root mean square update is below this; None takes all steps.
    """
    return _advance(key, sampler, log_density, state, until, tol)[0]


class RunStatus(eqx.Module):
    """The last state known to be finite, and whether the run has ended."""

    state: PyTree
    converged: Bool[Array, "*run"]
    failed: Bool[Array, "*run"]

    def after(
        self,
        state: PyTree,
        converged: Bool[Array, ""],
        mean_log_density: Scalar | float = 0.0,
    ) -> "RunStatus":
        """Return the status after steps to a state, which may not be finite."""
        finite = jnp.all(jnp.isfinite(state.particles)) & jnp.isfinite(mean_log_density)
        pick = lambda new, old: jnp.where(finite, new, old)
        good = jax.tree.map(pick, state, self.state)
        return RunStatus(good, converged & finite, ~finite)


def _take_steps(
    status: RunStatus,
    key: Key,
    sampler: AbstractSampler,
    log_density: LogDensity,
    ends: Int[Array, " record"],
    tol: float | None,
    keep: int,
) -> tuple[RunStatus, dict[str, Array], Bool[Array, " record"]]:
    """Take the steps up to each number in `ends`, and record the last of each.

    Returns the status, the records, and which of the records were made.
    """
    arrays_of = lambda tree: eqx.filter(tree, eqx.is_array)

    def unrecorded_steps(status, end):
        last = jnp.minimum(status.state.step + CHECK_EVERY, end - 1)
        return status.after(
            *_advance(key, sampler, log_density, status.state, last, tol)
        )

    def recorded_step(status):
        state, info = _step(key, sampler, log_density, status.state)
        converged = status.converged
        if tol is not None:
            converged = converged | (info.update_norm < tol)
        status = status.after(state, converged, info.log_density)
        record = {"step": state.step} | vars(info)
        if keep:
            record["particles"] = status.state.particles[:keep]
        return arrays_of(status), record

    def segment(status, end):
        ended = status.converged | status.failed
        end = jnp.where(ended, status.state.step, end)
        status = jax.lax.while_loop(
            lambda s: (s.state.step < end - 1) & ~s.converged & ~s.failed,
            lambda s: unrecorded_steps(s, end),
            status,
        )
        # A run that converged in this loop takes one more step, to record its end.
        due = (status.state.step < end) & ~status.failed
        blank = jax.tree.map(
            lambda leaf: jnp.zeros(leaf.shape, leaf.dtype),
            eqx.filter_eval_shape(recorded_step, status)[1],
        )
        unchanged = arrays_of(status), blank
        arrays, record = cond_if_any_run(due, lambda: recorded_step(status), unchanged)
        status = eqx.combine(arrays, status)
        return status, (record, due & ~status.failed)

    status, (records, made) = jax.lax.scan(segment, status, ends)
    return status, records, made


take_steps = eqx.filter_jit(_take_steps)
take_steps_of_runs = eqx.filter_jit(
    eqx.filter_vmap(
        _take_steps, in_axes=(eqx.if_array(0), 0, None, None, 0, None, None)
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
    """Take steps until number `until`, or until converged: an update below `tol`."""
    never = jnp.zeros((), bool)
    until = jnp.asarray(until, state.step.dtype)  # type: ignore[attr-defined]

    def unfinished(carry):
        state, converged = carry
        return (state.step < until) & ~converged

    def body(carry):
        state, info = _step(key, sampler, log_density, carry[0])
        # Without `tol` the info is not used, and the compiler removes it.
        return state, never if tol is None else info.update_norm < tol

    return jax.lax.while_loop(unfinished, body, (state, never))


def _step(key: Key, sampler: AbstractSampler, log_density: LogDensity, state: PyTree):
    return sampler.step(jr.fold_in(key, state.step), state, log_density)
