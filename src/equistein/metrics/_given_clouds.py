"""Samples that somebody gives, made clouds of a particle system; or refused."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from equistein._types import Particles
from equistein.metrics._particle_density import AbstractParticleDensity

_LARGEST = 1e15  # squares of larger numbers overflow in single precision


class GivenClouds(NamedTuple):
    """Clouds, centered.

    Attributes:
        points: The clouds, `(n, particle, dim)`.
        multiplicities: How often each distinct row was given.
        notes: What was done to them, as text.
    """

    points: Particles
    multiplicities: np.ndarray
    notes: tuple[str, ...]

    @property
    def effective_size(self) -> float:
        r"""How many samples these count for: $n^2 / \sum_k m_k^2$."""
        counts = self.multiplicities.astype(float)
        return float(counts.sum() ** 2 / np.sum(counts**2))


def as_clouds(samples: Any, target: AbstractParticleDensity) -> GivenClouds:
    """Return samples as centered clouds, after harmless changes.

    Args:
        samples: Rows of coordinates, or clouds, stacked on axis 0.
        target: What they are samples of.

    Raises:
        ValueError: If they cannot be samples of the target.
    """
    num, dim = target.num_particles, target.dim
    wanted = f"floating-point numbers of shape (n, {num * dim}) or (n, {num}, {dim})"
    needs = f"`score_against` needs `samples` of {target.name}, {wanted}, "
    values = np.asarray(samples)
    if not jnp.issubdtype(values.dtype, jnp.floating):
        raise ValueError(f"{needs}but they are of type {values.dtype}.")
    if values.shape[1:] not in ((num * dim,), (num, dim)) or len(values) < 2:
        raise ValueError(
            f"{needs}n at least 2, but got shape {values.shape}. Samples of another "
            "system need another target."
        )
    values = values.astype(np.float64)
    rows = values.reshape(len(values), -1)
    bad = ~np.all(np.abs(rows) <= _LARGEST, axis=1)
    if bad.any():
        raise ValueError(
            f"{needs}finite and at most 1e15, but {bad.sum()} of {len(rows)} are not, "
            f"the first at index {bad.argmax()}. Leave them out, and say how many."
        )
    if np.array_equal(rows, np.round(rows)):
        raise ValueError(f"{needs}but all are whole numbers.")
    notes = []
    if values.ndim == 2:
        notes.append(f"Rows were cut into {num} particles of {dim} coordinates.")
    clouds = rows.reshape(-1, num, dim)
    centers = clouds.mean(axis=1, keepdims=True)
    if np.max(np.abs(centers)) > 1e-4 * np.max(np.abs(clouds)):
        far = np.max(np.linalg.norm(centers, axis=-1))
        notes.append(
            f"Centers of mass, up to {far:.3g} from the origin, were moved there."
        )
    counts = np.unique(rows, axis=0, return_counts=True)[1]
    points = jnp.asarray(clouds - centers, float)
    return GivenClouds(points, counts, tuple(notes))
