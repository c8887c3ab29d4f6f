"""The one loop over the steps of a sampler."""

from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Int

from equistein._gate import keyed
from equistein._types import Key, LogDensity, Scalar
from equistein.samplers._base import AbstractSampler
from equistein.samplers._minibatched import of_step

State = TypeVar("State")


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

    One compiled loop, for use inside other compiled code too; `run` takes it between
    the steps that it records. Nothing is checked and nothing recorded.

    Args:
        key: The source of randomness; step i uses `fold_in(key, i)`.
        sampler: Any sampler.
        log_density: The unnormalized log density of one point.
        state: The state to go on from, such as `sampler.init(particles)`.
        until: The number of the last step, which the compiler need not know.
        tol: Stop once the root mean square update is below this; None takes all steps.
    """
    return advance_watched(key, sampler, log_density, state, until, tol)[0]


def advance_watched(
    key: Key,
    sampler: AbstractSampler,
    log_density: LogDensity,
    state: State,
    until: int | Int[Array, ""],
    tol: float | Scalar | None,
) -> tuple[State, Bool[Array, ""]]:
    """Take steps until number `until` or an update below `tol`; return whether it was.

    Without `tol` nobody looks at the infos, and the compiler leaves them out.
    """
    no = jnp.zeros((), bool)
    taken: Array = state.step  # type: ignore[attr-defined]
    until = jnp.asarray(until, taken.dtype)

    def step(state):
        step_key, density = of_step(jr.fold_in(key, state.step), log_density)
        return sampler.step(step_key, state, density)

    if tol is None:
        body = lambda _, state: step(state)[0]
        return jax.lax.fori_loop(taken, until, body, state), no

    def unfinished(carry):
        state, converged = carry
        return (state.step < until) & ~converged

    def watched(carry):
        state, info = step(carry[0])
        return state, info.update_norm < tol

    return jax.lax.while_loop(unfinished, watched, (state, no))
