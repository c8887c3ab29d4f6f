"""A sampler whose particles have coordinates that are held."""

from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array

from equistein._types import Key, LogDensity, Particles, Point, Scalar
from equistein.energies import AbstractEnergy
from equistein.samplers import AbstractSampler
from equistein.training.generators._clamp import Clamp


class HeldDensity(eqx.Module):
    r"""The density of the free coordinates, $\log p(x_F, v_H)$."""

    energy: AbstractEnergy
    clamp: Clamp

    def __call__(self, point: Point) -> Scalar:
        return self.energy.log_density(self.hold(point))

    def hold(self, point: Point) -> Point:
        """Return a point with held coordinates set."""
        return self.clamp.hold(point, self.energy.group(point.shape).project)

    def restore(self, point: Point) -> Point:
        """Return a point in the frame of the clamp's values."""
        return self.clamp.restore(point, self.energy.group(point.shape).project)


class HeldSampler(AbstractSampler[Any, Any]):
    """Takes the steps of a sampler, and sets held coordinates again after each.

    The density is a `HeldDensity`, which does not depend on them: what a sampler knows
    of it stays true.

    Args:
        sampler: The sampler.
    """

    sampler: AbstractSampler

    def init(self, particles: Particles, log_density: LogDensity) -> Any:
        return self.sampler.init(particles, log_density)

    def step(self, key: Key, state: Any, log_density: LogDensity) -> tuple[Any, Any]:
        assert isinstance(log_density, HeldDensity)
        state, info = self.sampler.step(key, state, log_density)
        held = jax.vmap(log_density.hold)(state.particles)
        return eqx.tree_at(lambda s: s.particles, state, held), info

    def summary(self, state: Any) -> dict[str, Array]:
        return self.sampler.summary(state)
