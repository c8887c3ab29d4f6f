"""The compiled loops over steps: `advance`, and the one of `run`, which records."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Int, PyTree

from equistein._check_arguments import accept_integer_key
from equistein._types import Key, LogDensity, Scalar
from equistein.samplers._base import AbstractSampler

CHECK_EVERY = 64
"""Steps between two checks that the particles are finite."""


@accept_integer_key
@eqx.filter_jit
def advance(
    key: Key,
    sampler: AbstractSampler,
    log_density: LogDensity,
    state: PyTree,
    until: int | Int[Array, ""],
    tol: float | Scalar | None = None,
) -> PyTree:
    """Take steps until `state.step` equals `until`, which may be traced.

    One compiled loop from a state such as `sampler.init(particles, log_density)`, in
    which nothing is checked or recorded. Step i, from 1, uses `fold_in(key, i - 1)`.
    With `tol` it stops once the root mean square update is below this.
    """
    never = jnp.zeros((), bool)
    until = jnp.asarray(until, state.step.dtype)

    def next_step(carry):
        state, info = _step(key, sampler, log_density, carry[0])
        # Without `tol` the info is not used, and the compiler removes it.
        return state, never if tol is None else info.update_norm < tol

    unfinished = lambda carry: (carry[0].step < until) & ~carry[1]
    return jax.lax.while_loop(unfinished, next_step, (state, never))[0]


@accept_integer_key
def visit(
    key: Key, sampler: AbstractSampler, log_density: LogDensity, state: PyTree,
    every: int, rounds: int,
) -> Float[Array, "sample *shape"]:  # fmt: skip
    """Return the particles of a state and, stacked on them, those every few steps."""
    parts = [state.particles]
    for _ in range(1, rounds):  # to a traced end, so that one program serves all
        until = state.step + every
        state = advance(key, sampler, log_density, state, until)
        parts.append(state.particles)
    return jnp.concatenate(parts)


class RunStatus(eqx.Module):
    """The last state known to be finite, and whether the run has ended."""

    state: PyTree
    converged: Bool[Array, "*run"]
    failed: Bool[Array, "*run"]


def _take_steps(
    status: RunStatus, key: Key, sampler: AbstractSampler, log_density: LogDensity,
    ends: Int[Array, " record"], tol: float | None, keep: int,
) -> tuple[RunStatus, dict[str, Array], Bool[Array, " record"]]:  # fmt: skip
    """Take the steps up to each number in `ends`, and record the last of each."""
    # Returns the status, the records, and which of the records were made.
    # Traced once: a step appears once in the program, however it is recorded.
    step = eqx.filter_closure_convert(
        lambda state: _step(key, sampler, log_density, state), status.state
    )
    shapes = eqx.filter_eval_shape(step, status.state)[1]
    no_info = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    never = jnp.zeros((), bool)

    def next_step(carry):
        state, info = step(carry[0])
        return state, info, never if tol is None else info.update_norm < tol

    def checked_steps(carry, end):
        """Take up to `CHECK_EVERY` steps; keep them if they end at finite values."""
        old, info = carry
        until = jnp.minimum(old.state.step + CHECK_EVERY, end)
        state, info, converged = jax.lax.while_loop(
            lambda c: (c[0].step < until) & ~c[2], next_step, (old.state, info, never)
        )
        at_record = converged | (state.step == end)
        finite = jnp.all(jnp.isfinite(state.particles))
        finite = finite & (~at_record | jnp.isfinite(info.log_density))
        pick = lambda new, old: jnp.where(finite, new, old)
        good = jax.tree.map(pick, state, old.state)
        return RunStatus(good, converged & finite, ~finite), info

    def segment(status, end):
        begin = status.state.step
        end = jnp.where(status.converged | status.failed, begin, end)
        status, info = jax.lax.while_loop(
            lambda c: (c[0].state.step < end) & ~c[0].converged & ~c[0].failed,
            lambda c: checked_steps(c, end),
            (status, no_info),
        )
        record = {"step": status.state.step} | vars(info)
        if keep:
            record["particles"] = status.state.particles[:keep]
        return status, (record, (status.state.step > begin) & ~status.failed)

    status, (records, made) = jax.lax.scan(segment, status, ends)
    return status, records, made


take_steps = eqx.filter_jit(_take_steps)
_axes = eqx.if_array(0), 0, None, None, 0, None, None
take_steps_of_runs = eqx.filter_jit(eqx.filter_vmap(_take_steps, in_axes=_axes))


def _step(key: Key, sampler: AbstractSampler, log_density: LogDensity, state: PyTree):
    return sampler.step(jr.fold_in(key, state.step), state, log_density)
