"""Samplers whose particles are independent Markov chains."""

import abc
from collections.abc import Callable
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Int

from equistein._gate import keyed
from equistein._types import Key, LogDensity, Particles, Point, Scalar
from equistein.samplers._base import AbstractSampler, cond_if_any
from equistein.samplers._geometric_path import Flat, GeometricPath, PathWalker
from equistein.samplers._steps import (
    check_fraction,
    check_step_size,
    inverse_temperature,
    rms,
    Schedule,
)

_ADAPTATION_RATE = 0.2  # of the step's logarithm, for a whole unit of acceptance

Move: TypeAlias = tuple[
    PathWalker, Float[Array, "*chain"], Int[Array, "*chain"], Bool[Array, "*chain"]
]
"""The walker after a move, the probability of acceptance, the evaluations of the score
that it took, and whether the density was a number where it went."""


class ChainParameters(eqx.Module):
    """What a move is tuned by, at one temperature.

    The inverse mass matrix is diagonal, or None for a move without one.
    """

    log_step_size: Scalar
    inverse_mass_matrix: Any = None


class ChainState(eqx.Module):
    """What the next step needs: the walkers hold the density at the particles.

    `evaluations` is a mean over the chains, rounded down; `remainder` is what is left.
    """

    particles: Particles
    walkers: PathWalker
    parameters: ChainParameters
    evaluations: Int[Array, ""]
    remainder: Int[Array, ""]
    step: Int[Array, ""]


class ChainInfo(eqx.Module):
    """What a step was like.

    The update's norm is a root mean square over the particles; `evaluations` counts
    those of the score so far, a particle on average, and `undefined` the moves of this
    step that went where the log density is NaN.
    """

    log_density: Scalar
    acceptance: Scalar
    update_norm: Scalar
    step_size: Scalar
    inverse_temperature: Scalar
    evaluations: Int[Array, ""]
    undefined: Int[Array, ""]


class AbstractMarkovChains(AbstractSampler[ChainState, ChainInfo]):
    """Independent chains, each move of which leaves the density exactly invariant.

    Tempering and sequential Monte Carlo move their particles with it. A move starts at
    a walker, which holds the values of the density that it needs, and ends at one; the
    parameters, such as a step size, belong to a temperature, not to a chain.

    Attributes:
        step_size: The first step size.
        project: What puts a point onto the subspace the particles live on.
        num_adapt: The number of first steps in which the step size adapts.
        acceptance: The acceptance rate aimed at.
        annealing: The inverse temperature as a function of the step, or None for 1; not
            where another sampler sets it.
    """

    step_size: eqx.AbstractVar[float | Scalar]
    project: eqx.AbstractVar[Callable[[Point], Point]]
    num_adapt: eqx.AbstractVar[int | Int[Array, ""]]
    acceptance: eqx.AbstractVar[float]
    annealing: eqx.AbstractVar[Schedule | None]

    def __check_init__(self):
        name = type(self).__name__
        check_step_size(name, "step_size", self.step_size, zero=False)
        check_fraction(name, acceptance=self.acceptance)

    def scaled(self, factor: float | Scalar) -> "AbstractMarkovChains":
        """Return these chains with their first step size multiplied."""
        return eqx.tree_at(lambda s: s.step_size, self, self.step_size * factor)

    @abc.abstractmethod
    def parameters(self, particles: Particles) -> ChainParameters:
        """Return the first parameters."""

    @abc.abstractmethod
    def move(
        self,
        key: Key,
        path: GeometricPath,
        walker: PathWalker,
        beta: Scalar,
        parameters: ChainParameters,
    ) -> Move:
        r"""Make a move that leaves the path's density at $\beta$ invariant."""

    @keyed
    def tune(
        self,
        key: Key,
        path: GeometricPath,
        particles: Particles,
        beta: Scalar,
        parameters: ChainParameters,
    ) -> tuple[ChainParameters, Int[Array, ""]]:
        r"""Return parameters that suit the density at $\beta$, before the first move.

        And the evaluations of the score that it took, a particle.
        """
        del key, path, particles, beta
        return parameters, jnp.zeros((), int)

    def adapt(self, parameters: ChainParameters, rate: Scalar) -> ChainParameters:
        """Return the parameters after moves that were accepted at this rate."""
        size = parameters.log_step_size + _ADAPTATION_RATE * (rate - self.acceptance)
        return ChainParameters(size, parameters.inverse_mass_matrix)

    def init(self, particles: Particles, log_density: LogDensity) -> ChainState:
        """Build the state; the particles are projected."""
        x = jax.vmap(self.project)(particles)
        # The path from a flat reference is p^beta.
        walkers = jax.vmap(GeometricPath(log_density, Flat()).walker_at)(x)
        zero = jnp.zeros((), int)
        return ChainState(x, walkers, self.parameters(x), zero + 1, zero, zero)

    @keyed
    def step(
        self, key: Key, state: ChainState, log_density: LogDensity
    ) -> tuple[ChainState, ChainInfo]:
        tune_key, move_key = jr.split(key)
        x, num = state.particles, len(state.particles)
        path = GeometricPath(log_density, Flat())
        beta = inverse_temperature(self.annealing, state.step, x.dtype)
        parameters, tuning = cond_if_any(
            state.step == 0,
            lambda: self.tune(tune_key, path, x, beta, state.parameters),
            (state.parameters, jnp.zeros((), int)),
        )
        walkers, chances, spent, defined = jax.vmap(
            lambda key, walker: self.move(key, path, walker, beta, parameters)
        )(jr.split(move_key, num), state.walkers)
        rate = jnp.mean(chances)
        adapts, adapted = state.step < self.num_adapt, self.adapt(parameters, rate)
        next_parameters = jax.tree.map(
            lambda new, old: jnp.where(adapts, new, old), adapted, parameters
        )
        total = state.remainder + jnp.sum(spent)
        evaluations = state.evaluations + tuning + total // num
        new = ChainState(
            walkers.point, walkers, next_parameters, evaluations, total % num,
            state.step + 1,
        )  # fmt: skip
        info = ChainInfo(
            jnp.mean(state.walkers.value), rate, rms(walkers.point - x),
            jnp.exp(parameters.log_step_size), beta, evaluations, jnp.sum(~defined),
        )  # fmt: skip
        return new, info

    def log_densities(self, state: ChainState) -> Float[Array, " particle"]:
        return state.walkers.value
