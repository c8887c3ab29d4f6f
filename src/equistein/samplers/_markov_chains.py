"""The interface of samplers whose particles are independent Markov chains."""

import abc
from collections.abc import Callable
from typing import Any, TypeAlias

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from equistein._gate import keyed
from equistein._types import Key, Particles, Point, Scalar
from equistein.samplers._base import AbstractSampler, Info, State
from equistein.samplers._geometric_path import GeometricPath, PathWalker

Parameters: TypeAlias = Any  # a tree of arrays, such as a step size


class AbstractMarkovChains(AbstractSampler[State, Info]):
    """Independent chains, each move of which leaves the density exactly invariant.

    What tempering and sequential Monte Carlo move their particles with. A move starts
    from a walker, which holds the values of the density that it needs, and ends at one;
    the parameters, such as a step size, belong to a temperature, not to a chain.
    """

    project: eqx.AbstractVar[Callable[[Point], Point]]

    @abc.abstractmethod
    def parameters(self, particles: Particles) -> Parameters:
        """Return the first parameters, before the density is known."""

    @abc.abstractmethod
    def move(
        self,
        key: Key,
        path: GeometricPath,
        walker: PathWalker,
        beta: Scalar,
        parameters: Parameters,
    ) -> tuple[PathWalker, Scalar, Int[Array, ""], Bool[Array, ""]]:
        r"""Make a move that leaves the path's density at $\beta$ invariant.

        Returns:
            The new walker, the probability of acceptance, the number of evaluations of
            the score that it took, and whether the density was a number where the move
            went.
        """

    @keyed
    def tune(
        self,
        key: Key,
        path: GeometricPath,
        particles: Particles,
        beta: Scalar,
        parameters: Parameters,
    ) -> tuple[Parameters, Int[Array, ""]]:
        r"""Return parameters that suit the density at $\beta$, before the first move.

        Returns:
            The parameters, and the evaluations of the score that it took, a particle.
        """
        del key, path, particles, beta
        return parameters, jnp.zeros((), int)

    def adapted(self, parameters: Parameters, acceptance: Scalar) -> Parameters:
        """Return the parameters after moves that were accepted at this rate."""
        del acceptance
        return parameters

    def check_invariant(self) -> None:
        """Raise `ValueError` if the moves leave another density invariant."""
