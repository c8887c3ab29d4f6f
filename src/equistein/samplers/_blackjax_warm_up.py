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
    chain. The chains go on with the median step size and the mean matrix for the last
    quarter, which finds step sizes alone: their median suits the matrix of all.

    Returns:
        The step size, the inverse mass matrix, and the evaluations of the score, of all
        chains together.
    """
    dtype, density = points.dtype, widened(density, points.dtype)
    points, step, mass = wide((points, step_size, inverse_mass_matrix))
    run = _microcanonical if algorithm.kind.is_microcanonical else _windows
    first, spent = 3 * num_steps // 4, jnp.zeros((), int)
    phases = [(first, True), (num_steps - first, False)]
    for (num, adapts_matrix), phase_key in zip(phases, jr.split(key), strict=True):

        def chain(key, point, step=step, mass=mass, num=num, matrix=adapts_matrix):
            return run(
                key, algorithm, density, point, step, mass, num, acceptance, matrix
            )

        with lenient():
            found = jax.vmap(chain)(jr.split(phase_key, len(points)), points)
        points, spent = found.point, spent + jnp.sum(found.evaluations)
        step = jnp.exp(jnp.median(jnp.log(found.step_size)))
        mass = jnp.mean(found.inverse_mass_matrix, axis=0)
    return step.astype(dtype), mass.astype(dtype), spent


def _windows(
    key, algorithm, density, point, step_size, mass, num_steps, acceptance, matrix
) -> Found:
    """Run `blackjax.staged_adaptation`, Stan's warm-up, or its fast steps alone."""
    import blackjax

    init_key, key = jr.split(key)
    parts = _Parts(algorithm.init(init_key), algorithm.kernel)
    adaptation: Any = blackjax.staged_adaptation(
        parts, density, "welford_diag" if mass.ndim == 1 else "welford_dense",
        initial_inverse_mass_matrix=mass, initial_step_size=step_size,
        target_acceptance_rate=acceptance,
        adaptation_info_fn=lambda state, info, adapted: algorithm.evaluations(info),
        schedule_fn=None if matrix else lambda num: jnp.zeros((num, 2), int),
    )  # fmt: skip
    found, spent = adaptation.run(key, point, num_steps)
    return Found(
        found.parameters["step_size"],
        found.parameters["inverse_mass_matrix"],
        found.state.position,
        jnp.sum(spent) + 1,
    )


def _microcanonical(
    key, algorithm, density, point, step_size, mass, num_steps, acceptance, matrix
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

    share = 1 / 3 if matrix else 1.0
    found: Any
    state: Any = algorithm.init(init_key)(point, density)
    state, found, steps = blackjax.adjusted_mclmc_find_L_and_step_size(
        kernel, density, num_steps, state, key, acceptance,
        frac_tune1=share, frac_tune2=share if matrix else 0.0,
        target_num_integration_steps=count,
        params=MCLMCAdaptationState(count * step_size, step_size, mass),
    )  # fmt: skip
    spent = algorithm.evaluations_per_step() * jnp.asarray(steps).astype(int) + 1
    return Found(found.step_size, found.inverse_mass_matrix, state.position, spent)


class _Parts(NamedTuple):
    """What BlackJAX's warm-up takes of an algorithm."""

    init: Any
    build_kernel: Any


def _mean_number_of_steps(key: Key, algorithm: Algorithm) -> Scalar:
    counts = algorithm.options["integration_steps_params"]
    if not algorithm.kind.is_dynamic:
        return jnp.asarray(counts[0], float)
    draw = lambda key: algorithm.options["integration_steps_fn"](key, *counts)
    return jnp.mean(jax.vmap(draw)(jr.split(key, _DRAWS)).astype(float))
