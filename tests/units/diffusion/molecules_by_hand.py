"""Small clouds, and energies whose network is known."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from equistein.diffusion import NoiseEnergy
from equistein.groups import PointCloud
from equistein.models import DenoisingSettings, for_data
from equistein.networks import AbstractNoiseNetwork

GROUP = PointCloud("COO", 3)


def clouds(key, num=8):
    points = jnp.eye(3)[None] + 0.1 * jr.normal(key, (num, 3, 3))
    return jax.vmap(GROUP.project)(points)


def energy_of(key, data, group=GROUP, atomic_numbers=None, **settings):
    settings = DenoisingSettings(width=4, depth=1, **settings)
    return for_data(
        key, group, data, settings=settings,
        atomic_numbers=atomic_numbers,
    ).energy  # fmt: skip


class Known(AbstractNoiseNetwork):
    """Of three atoms: with 1 one cloud at the origin, blurred; with 0 a normal law."""

    factor: float
    scale: jax.Array

    def __call__(self, point, noise=None):
        square, noise = jnp.sum(point**2) / 2, noise * self.scale
        confining = square / (noise**2 + self.scale**2)
        known = noise / self.scale * (confining - square / noise**2)
        return self.factor * known

    def group(self, shape):
        return GROUP


def known(energy, factor=0.0):
    """Return the energy with a network that is known."""
    return eqx.tree_at(lambda e: e.network, energy, Known(factor, energy.scale))


def normal_energy(noise=0.5):
    """Return the energies of a normal law of root mean square 1."""
    data = jnp.ones((2, 3, 3)) * jnp.array([1.0, -1.0, 0.0])[None, :, None]
    data = data / jnp.sqrt(jnp.mean(data**2))
    return NoiseEnergy(Known(0.0, jnp.ones(())), data, noise)
