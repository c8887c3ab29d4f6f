"""Contrastive divergence at all noise levels."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Int, PyTree, UInt32

from equistein._gate import gate
from equistein._numbers import check_integers, check_positive
from equistein._types import Key, Particles, Scalar
from equistein.diffusion._noise_energy import NoiseEnergy
from equistein.diffusion._steps import DiffusionSteps
from equistein.energies import fixed
from equistein.training import (
    AbstractObjective,
    Batch,
    displacement,
    divergence,
    score_norm,
)


class DiffusionState(eqx.Module):
    """What the next batch needs.

    Attributes:
        particles: The particles, at the level of the next step.
        count: The number of batches so far.
        key: The words of the key of all randomness.
    """

    particles: Particles
    count: Int[Array, ""]
    key: UInt32[Array, "..."]


@gate
class DiffusionContrastiveDivergence(AbstractObjective[NoiseEnergy]):
    r"""Contrastive divergence with particles that follow the reverse diffusion.

    $$L = \frac{\sigma}{s} \bigl(\mathbb E\, E_\sigma(x^+)
      - \mathbb E\, E_\sigma(x^-)\bigr)
      + \lambda \bigl(\mathbb E\, E_\sigma(x^+)^2 + \mathbb E\, E_\sigma(x^-)^2\bigr)$$

    The negatives move from the largest to the least noise, some steps of the way a
    batch, as new samples do, and then start again; the data of a batch is blurred to
    their level $\sigma$.

    Args:
        steps: The steps of the particles.
        num_particles: The number of negatives.
        num_steps: The steps of a batch.
        regularization: The weight $\lambda \ge 0$.

    Raises:
        ValueError: If a number is out of range.
    """

    steps: DiffusionSteps
    _: dataclasses.KW_ONLY
    num_particles: int = 64
    num_steps: int = 10
    regularization: float = eqx.field(default=0.0, converter=float)

    def __check_init__(self):
        owner = "DiffusionContrastiveDivergence"
        counts = {"num_particles": self.num_particles, "num_steps": self.num_steps}
        check_integers(owner, **counts)
        check_positive(owner, zero=True, regularization=self.regularization)
        if self.steps.temperature != 1:
            raise ValueError(
                f"{owner} needs `steps` of temperature 1, as warm as the energy, but "
                f"got {self.steps.temperature!r}."
            )

    def init(self, key: Key, energy: NoiseEnergy, data: Batch) -> DiffusionState:
        """Return the state before the first batch.

        Raises:
            ValueError: If the energy has no noise levels, or needs labels.
        """
        if not isinstance(energy, NoiseEnergy):
            raise ValueError(
                "DiffusionContrastiveDivergence needs a NoiseEnergy, but got "
                f"{type(energy).__name__}: take ContrastiveDivergence for it."
            )
        shape = (self.num_particles, *data.points.shape[1:])
        particles = jnp.zeros(shape, data.points.dtype)
        return DiffusionState(particles, jnp.zeros((), int), jr.key_data(key))

    def loss(
        self, key: Key, energy: NoiseEnergy, state: DiffusionState, batch: Batch
    ) -> tuple[Scalar, PyTree, dict[str, Scalar]]:
        first = self.num_steps * (state.count % self._num_parts)
        steps = self.steps.scaled(batch.step_scale)
        before, after = self._move(fixed(energy), state, first, steps)
        level = self.steps.level(energy, first + self.num_steps)
        model = energy.at(level)
        noise = jr.normal(key, batch.points.shape, batch.points.dtype)
        blurred = batch.points + level * jax.vmap(energy.project)(noise)
        above, below = jax.vmap(model)(blurred), jax.vmap(model)(after)
        weight = level / jax.lax.stop_gradient(energy.scale)
        loss, info = divergence(above, below, self.regularization, weight)
        info |= {
            "score_norm": score_norm(fixed(model), after),
            "displacement": displacement(before, after),
        }
        state = DiffusionState(after, state.count + 1, state.key)
        return loss, state, info

    @property
    def _num_parts(self) -> int:
        """The number of batches that the way to the least noise takes."""
        return -(-self.steps.num_steps // self.num_steps)

    def _move(
        self,
        energy: NoiseEnergy,
        state: DiffusionState,
        first: Int[Array, ""],
        steps: DiffusionSteps,
    ) -> tuple[Particles, Particles]:
        """Return the particles before and after a batch's steps.

        All batches of one way to the least noise share a key.
        """
        key = jr.fold_in(jr.wrap_key_data(state.key), state.count // self._num_parts)
        start_key, run_key = jr.split(key)
        particles = state.particles
        fresh = energy.start(start_key, len(particles), particles.shape[1:])
        particles = jnp.where(first == 0, fresh, particles)
        return particles, steps.run(run_key, energy, particles, first, self.num_steps)
