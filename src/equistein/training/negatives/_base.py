"""The interface of negatives."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from equistein._types import Key, Particles, Scalar
from equistein.energies import AbstractEnergy
from equistein.training._batch import Batch

_ONE_SCORE_IN = 8


class AbstractNegatives(eqx.Module):
    """A way to draw samples of an energy that changes from batch to batch."""

    @abc.abstractmethod
    def init(self, key: Key, energy: AbstractEnergy, data: Batch) -> PyTree:
        """Return the state before the first batch.

        Raises:
            ValueError: If they cannot be drawn from this energy, or not start.
        """

    @abc.abstractmethod
    def draw(
        self, key: Key, energy: AbstractEnergy, state: PyTree, batch: Batch
    ) -> tuple[Particles, PyTree, dict[str, Scalar]]:
        """Return negatives, the next state, and numbers to follow.

        The sampler takes steps of `batch.step_scale` times those set.
        """


def score_norm(energy: AbstractEnergy, particles: Particles) -> Scalar:
    """Return the root mean square norm of the scores of an eighth of the particles.

    A mean over an epoch's batches needs only some of each.
    """
    some = particles[: -(-len(particles) // _ONE_SCORE_IN)]
    scores = jax.vmap(jax.grad(energy))(some)
    return jnp.sqrt(jnp.sum(scores**2) / len(scores))


def displacement(before: Particles, after: Particles) -> Scalar:
    """Return how far particles moved, root mean square."""
    return jnp.sqrt(jnp.sum((after - before) ** 2) / len(after))
