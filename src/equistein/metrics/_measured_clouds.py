"""Clouds with what their scores are made of."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein._types import LogDensity, Particles
from equistein.metrics._particle_systems import pair_distances

_BATCH = 1_000  # clouds at a time


class MeasuredClouds(NamedTuple):
    """Clouds, and of each the energy, the virial and the pair distances."""

    points: Particles
    energies: Float[Array, " n"]
    virials: Float[Array, " n"]
    distances: Float[Array, "n pair"]

    def take(self, rows: np.ndarray) -> "MeasuredClouds":
        """Return the clouds at these rows."""
        return MeasuredClouds(*(part[rows] for part in self))


def measured(log_density: LogDensity, points: Particles) -> MeasuredClouds:
    """Measure clouds."""
    energies, virials = _energies(log_density, points)
    return MeasuredClouds(points, energies, virials, pair_distances(points))


@eqx.filter_jit
def _energies(log_density: LogDensity, points: Particles):
    def one(x):
        value, score = jax.value_and_grad(log_density)(x)
        return -value, -jnp.sum(x * score)

    return jax.lax.map(one, points, batch_size=_BATCH)
