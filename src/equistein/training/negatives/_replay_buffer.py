"""A replay buffer: more particles than a batch moves."""

from typing import Any

import equinox as eqx
import jax.random as jr

from equistein._gate import gate
from equistein._types import Key, Particles, Scalar
from equistein.energies import AbstractEnergy
from equistein.samplers import AbstractSampler
from equistein.training._batch import Batch
from equistein.training.initial._base import AbstractInitial
from equistein.training.negatives._base import AbstractNegatives
from equistein.training.negatives._persistent import Persistent, PersistentState


@gate
class ReplayBuffer(AbstractNegatives):
    """Particles of which each batch draws some, moves them, and puts them back.

    Args:
        sampler: As for `Persistent`.
        initial: As for `Persistent`.
        size: The number of particles that are kept, at least `num_particles`.
        options: Further arguments of `Persistent`, such as `num_particles`.

    Raises:
        ValueError: If an argument is not what it should be.

    References:
        Du and Mordatch (2019), Implicit generation and modeling with EBMs, section 3.2.
    """

    chains: Persistent
    size: int

    def __init__(
        self,
        sampler: AbstractSampler,
        initial: AbstractInitial,
        size: int,
        **options: Any,
    ):
        self.chains = Persistent(sampler, initial, **options)
        if type(size) is not int or size < self.chains.num_particles:
            raise ValueError(
                "ReplayBuffer needs `size` of at least `num_particles`, "
                f"{self.chains.num_particles}, but got {size!r}."
            )
        self.size = size

    def init(self, key: Key, energy: AbstractEnergy, data: Batch) -> PersistentState:
        return self.chains.init_many(key, energy, data, self.size)

    def draw(
        self, key: Key, energy: AbstractEnergy, state: PersistentState, batch: Batch
    ) -> tuple[Particles, PersistentState, dict[str, Scalar]]:
        pick_key, key = jr.split(key)
        rows = jr.permutation(pick_key, self.size)[: self.chains.num_particles]
        picked = eqx.tree_at(lambda s: s.particles, state, state.particles[rows])
        drawn, moved, info = self.chains.draw(key, energy, picked, batch)
        buffer = state.particles.at[rows].set(moved.particles)
        return drawn, eqx.tree_at(lambda s: s.particles, moved, buffer), info
