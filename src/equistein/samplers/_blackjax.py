"""Samplers made of algorithms of BlackJAX."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp

from equistein._gate import gate
from equistein._numbers import check_integers
from equistein._types import LogDensity, Particles, Point, Scalar
from equistein.samplers._base import AbstractSampler
from equistein.samplers._blackjax_algorithms import Algorithm
from equistein.samplers._blackjax_chains import BlackJAXChains
from equistein.samplers._schedules import check_step_size
from equistein.samplers._scores import everywhere

_NUM_WARMUP = 500  # by default
_FEWEST = 10  # steps of a warm-up


@gate
def from_blackjax(
    algorithm: Any,
    *,
    num_warmup: int | None = None,
    step_size: float | Scalar | None = None,
    inverse_mass_matrix: Any = None,
    acceptance: float = 0.8,
    project: Callable[[Point], Point] = everywhere,
    **options: Any,
) -> BlackJAXChains:
    r"""Return a sampler whose chains an algorithm of BlackJAX moves.

    As a sampler of its own or as `inner` of `ParallelTempering` and `AnnealedSMC`. A
    step moves each particle once, by `blackjax.hmc`, `mhmc`, `nuts`, their `dhmc` and
    `dmhmc`, `adjusted_mclmc` or `adjusted_mclmc_dynamic`, which leave the density
    exactly invariant.

    In the first step BlackJAX's own warm-up (`window_adaptation`, or for microcanonical
    algorithms `adjusted_mclmc_find_L_and_step_size`) runs eight chains from as many of
    the particles, to find a step size and an inverse mass matrix for all; then they
    stay. Parallel tempering does so at each temperature, sequential Monte Carlo at the
    first, and both adapt the step size further. The particles themselves do not move in
    the warm-up.

    BlackJAX sees coordinates of an orthonormal basis of the subspace that `project`
    projects on; the diagonal of a mass matrix is of that basis. Evaluations of the
    score are counted: those of the integrator's steps, one at the start, the warm-up's,
    and, as `inner`, one more a move. A compiled step takes as long as its longest
    chain.

    Args:
        algorithm: Such as `blackjax.nuts`.
        num_warmup: The number of steps of the warm-up; 0 for none. By default 500, or
            0 where `step_size` is given.
        step_size: The step of the integrator, or where the warm-up begins (1).
        inverse_mass_matrix: Its diagonal, or all of it, in coordinates on the subspace;
            or where the warm-up begins, which finds one of the same form (ones).
        acceptance: The rate of acceptance that the warm-up aims at.
        project: What puts a point onto the subspace, linear and orthogonal.
        **options: Of the algorithm, such as `num_integration_steps` of `blackjax.hmc`,
            `max_num_doublings` of `blackjax.nuts`, `integration_steps_params=(2,)` of
            `blackjax.adjusted_mclmc`, or `integrator`.

    Raises:
        ValueError: If the algorithm is none of these, or an argument is out of range.
        ImportError: If BlackJAX is not installed: `pip install equistein[bayes]`.

    References:
        Cabezas et al. (2024), BlackJAX: composable Bayesian inference in JAX; Hoffman
        and Gelman (2014), The No-U-Turn Sampler; Robnik, Cohn-Gordon and Seljak (2025),
        Metropolis adjusted microcanonical Hamiltonian Monte Carlo.
    """
    if num_warmup is None:
        num_warmup = _NUM_WARMUP if step_size is None else 0
    if num_warmup != 0:
        check_integers("from_blackjax", _FEWEST, num_warmup=num_warmup)
    elif step_size is None:
        raise ValueError(
            "from_blackjax needs `step_size` where there is no warm-up to find it."
        )
    check_step_size("from_blackjax", "step_size", step_size, zero=False)
    if not 0 < acceptance < 1:
        raise ValueError(
            f"from_blackjax needs 0 < `acceptance` < 1, but got {acceptance!r}."
        )
    if inverse_mass_matrix is not None:
        inverse_mass_matrix = jnp.asarray(inverse_mass_matrix, float)
        if not bool(jnp.all(jnp.isfinite(inverse_mass_matrix))):
            raise ValueError(
                "from_blackjax needs an `inverse_mass_matrix` that is finite, but got "
                f"{inverse_mass_matrix}."
            )
    return BlackJAXChains(
        algorithm=Algorithm(algorithm, options),
        num_warmup=num_warmup,
        step_size=1.0 if step_size is None else step_size,
        inverse_mass_matrix=inverse_mass_matrix,
        acceptance=float(acceptance),
        project=project,
    )


class SamplingAlgorithm(NamedTuple):
    """`init(position)` and `step(key, state)`, as BlackJAX names them."""

    init: Callable[..., Any]
    step: Callable[..., tuple[Any, Any]]


@gate
def as_blackjax(sampler: AbstractSampler, log_density: LogDensity) -> SamplingAlgorithm:
    """Return a sampler in the form of `blackjax.base.SamplingAlgorithm`.

    It has `init(position, rng_key=None)` and `step(rng_key, state)`, where the position
    is the array of all particles.
    """

    def init(position: Particles, rng_key: Any = None):
        del rng_key  # no sampler here starts at random
        return sampler.init(position, log_density)

    def step(rng_key, state):
        return sampler.step(rng_key, state, log_density)

    return SamplingAlgorithm(init, step)
