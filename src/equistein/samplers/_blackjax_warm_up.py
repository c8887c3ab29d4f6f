"""BlackJAX's own warm-ups, of several chains that share what they find."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Int

from equistein._types import Key, Scalar
from equistein.samplers._blackjax_algorithms import (
    Algorithm,
    Density,
    lenient,
    wide,
    widened,
)

_DRAWS = 4_096  # of a random number of steps, for its mean


class Found(NamedTuple):
    """What the warm-up of one chain found."""

    step_size: Scalar
    inverse_mass_matrix: Array
    point: Float[Array, " coordinate"]
    evaluations: Int[Array, ""]


def warm_up(
    key: Key,
    algorithm: Algorithm,
    density: Density,
    points: Float[Array, "chain coordinate"],
    step_size: Scalar,
    inverse_mass_matrix: Array,
    num_steps: int,
    acceptance: float,
) -> tuple[Scalar, Array, Int[Array, ""]]:
    """Run BlackJAX's own warm-up of some chains, from points in coordinates.

    Three quarters of the steps find a step size and an inverse mass matrix for each
    chain. In the last quarter the chains continue with the mean of the matrices, from
    the median step size, and find one step size for all. Returns the step size, the
    matrix, and the evaluations of the score by all chains together.
    """
    dtype, density = points.dtype, widened(density, points.dtype)
    points, step, mass = wide((points, step_size, inverse_mass_matrix))
    run = _microcanonical if algorithm.is_microcanonical else _windows
    first, first_key, key = 3 * num_steps // 4, *jr.split(key)

    def chain(key, point):
        return run(key, algorithm, density, point, step, mass, first, acceptance)

    with lenient():
        found = jax.vmap(chain)(jr.split(first_key, len(points)), points)
        step = jnp.exp(jnp.nanmedian(jnp.log(found.step_size)))
        mass = jnp.mean(found.inverse_mass_matrix, axis=0)
        step, spent = _common_step_size(
            key, algorithm, density, found.point, step, mass, num_steps - first,
            acceptance,
        )  # fmt: skip
    spent = spent + jnp.sum(found.evaluations)
    return step.astype(dtype), mass.astype(dtype), spent


def _windows(
    key, algorithm, density, point, step_size, mass, num_steps, acceptance
) -> Found:
    """Run `blackjax.window_adaptation`, Stan's warm-up."""
    import blackjax

    init_key, key = jr.split(key)
    parts = _Parts(algorithm.init(init_key), algorithm.kernel)
    adaptation: Any = blackjax.window_adaptation(
        parts, density, is_mass_matrix_diagonal=mass.ndim == 1,
        initial_inverse_mass_matrix=mass, initial_step_size=step_size,
        target_acceptance_rate=acceptance,
        adaptation_info_fn=lambda state, info, adapted: algorithm.evaluations(info),
    )  # fmt: skip
    found, spent = adaptation.run(key, point, num_steps)
    return Found(
        found.parameters["step_size"],
        found.parameters["inverse_mass_matrix"],
        found.state.position,
        jnp.sum(spent) + 1,
    )


def _microcanonical(
    key, algorithm, density, point, step_size, mass, num_steps, acceptance
) -> Found:
    """Run `blackjax.adjusted_mclmc_find_L_and_step_size`, a third for each part.

    It takes as many integration steps a move as the moves to come.
    """
    import blackjax
    from blackjax.adaptation.mclmc_adaptation import MCLMCAdaptationState

    init_key, count_key, key = jr.split(key, 3)
    count: Any = _mean_number_of_steps(count_key, algorithm).astype(point.dtype)
    step = algorithm.kernel()

    def kernel(*, rng_key, state, logdensity_fn, integration_steps_params, **found):
        del integration_steps_params
        return step(rng_key, state, logdensity_fn, **found)

    found: Any
    state: Any = algorithm.init(init_key)(point, density)
    state, found, steps = blackjax.adjusted_mclmc_find_L_and_step_size(
        kernel, density, num_steps, state, key, acceptance,
        frac_tune1=1 / 3, frac_tune2=1 / 3, target_num_integration_steps=count,
        params=MCLMCAdaptationState(count * step_size, step_size, mass),
    )  # fmt: skip
    spent = algorithm.evaluations_per_step() * jnp.asarray(steps).astype(int) + 1
    return Found(found.step_size, found.inverse_mass_matrix, state.position, spent)


def _common_step_size(
    key, algorithm, density, points, step_size, mass, num_steps, acceptance
) -> tuple[Scalar, Int[Array, ""]]:
    """Run BlackJAX's dual averaging of one step size for all chains."""
    from blackjax.adaptation.step_size import dual_averaging_adaptation

    init_key, key = jr.split(key)
    begin, update, end = dual_averaging_adaptation(acceptance)
    kernel, num = algorithm.kernel(), len(points)

    def step(carry, key):
        states, adaptation = carry
        size = jnp.exp(adaptation.log_step_size)

        def move(key, state):
            state, info = kernel(
                key, state, density, step_size=size, inverse_mass_matrix=mass
            )
            return state, jnp.asarray(info.acceptance_rate), algorithm.evaluations(info)

        states, rates, spent = jax.vmap(move)(jr.split(key, num), states)
        rate = jnp.mean(jnp.nan_to_num(rates))
        return (states, update(adaptation, rate)), jnp.sum(spent)

    start = lambda key, point: algorithm.init(key)(point, density)
    states = jax.vmap(start)(jr.split(init_key, num), points)
    (_, found), spent = jax.lax.scan(
        step, (states, begin(step_size)), jr.split(key, num_steps)
    )
    return end(found), jnp.sum(spent) + num


class _Parts(NamedTuple):
    """What BlackJAX's warm-up takes of an algorithm."""

    init: Any
    build_kernel: Any


def _mean_number_of_steps(key: Key, algorithm: Algorithm) -> Scalar:
    counts = algorithm.options["integration_steps_params"]
    if not algorithm.is_dynamic:
        return jnp.asarray(counts[0], float)
    draw = lambda key: algorithm.options["integration_steps_fn"](key, *counts)
    return jnp.mean(jax.vmap(draw)(jr.split(key, _DRAWS)).astype(float))
