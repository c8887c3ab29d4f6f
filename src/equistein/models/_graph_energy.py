"""Energies of atoms on a graph network, one for each level of noise."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from equistein._gate import gate
from equistein._types import Key, Particles
from equistein.diffusion import MaskedNoiseEnergy, NoiseEnergy
from equistein.groups import PointCloud
from equistein.networks import EGNN

_LOOKED_AT = 512  # clouds to measure distances in
_NOISES = 20  # the least ones in the distance to the nearest particle


@gate
def graph_energy_for(
    key: Key,
    group: PointCloud,
    data: Particles,
    *,
    atomic_numbers: Sequence[int] | None = None,
    width: int = 64,
    depth: int = 4,
    sigma_min: float | None = None,
) -> NoiseEnergy:
    """Build an energy for each level of noise, on a graph network of all particles.

    The network looks a quarter further than the data's largest distance.

    Args:
        key: The source of the weights.
        group: The symmetry.
        data: The data, stacked on axis 0.
        atomic_numbers: The atomic number of each particle, if it is an atom.
        width: The number of units of the network.
        depth: The number of its layers.
        sigma_min: The least noise; None is a 20th of the median distance to the nearest
            particle.

    Raises:
        ValueError: If the group does not act on the data, has no reflections, a number
            is not positive, or all particles are at one place.
    """
    group.check_shape(data.shape[1:])
    if not group.reflections:
        raise ValueError(
            "A graph network of distances does not tell mirror images apart: use "
            "PointCloud(..., reflections=True)."
        )
    nearest, farthest = _spans(data)
    network = EGNN(
        group.species, atomic_numbers=atomic_numbers, dim=group.dim, width=width,
        depth=depth, reach=1.25 * farthest, key=key,
    )  # fmt: skip
    return NoiseEnergy(
        network, data, nearest / _NOISES if sigma_min is None else sigma_min
    )


@gate
def masked_energy_for(
    key: Key,
    species: Sequence[Sequence[str]],
    data: Particles,
    labels: Int[Array, " particle"],
    *,
    atomic_numbers: Sequence[Sequence[int]],
    width: int = 64,
    depth: int = 4,
    sigma_min: float | None = None,
) -> MaskedNoiseEnergy:
    """Build energies of several formulas, on one graph network as `graph_energy_for`.

    Args:
        key: The source of the weights.
        species: The elements of the atoms of each formula.
        data: Molecules, centered, with rows of zeros behind those of small formulas.
        labels: The number of the formula of each.
        atomic_numbers: The atomic numbers of the atoms of each formula.
        width: The number of units of the network.
        depth: The number of its layers.
        sigma_min: The least noise; None is as for one formula.
    """
    known = {
        symbol: number
        for row, numbers in zip(species, atomic_numbers, strict=True)
        for symbol, number in zip(row, numbers, strict=True)
    }
    names = list(known)
    formulas = [tuple(names.index(symbol) for symbol in row) for row in species]
    sizes = [len(species[label]) for label in labels.tolist()]
    coordinates = sum(sizes) * data.shape[2]
    scale = (float(jnp.sum(data**2)) / coordinates) ** 0.5
    nearest, farthest = _spans(data, sizes)
    network = EGNN(
        names, atomic_numbers=list(known.values()), dim=data.shape[2], width=width,
        depth=depth, reach=1.25 * farthest, key=key,
    ).of((0,) * data.shape[1])  # fmt: skip
    sigma_min = nearest / _NOISES if sigma_min is None else sigma_min
    energy = NoiseEnergy(network, data, sigma_min)
    size = jnp.asarray(scale, data.dtype)
    return MaskedNoiseEnergy(energy, formulas, size, 2 * size)


def _spans(data: Particles, sizes: Sequence[int] | None = None) -> tuple[float, float]:
    """Return the median distance to the nearest particle, and the largest distance.

    Args:
        data: Clouds of particles, stacked on axis 0.
        sizes: The number of particles of each, if not all rows count.

    Raises:
        ValueError: If particles coincide, most of them or all.
    """
    clouds = np.asarray(data, np.float64)[:_LOOKED_AT]
    nearest, farthest = [], 0.0
    for index, cloud in enumerate(clouds):
        cloud = cloud if sizes is None else cloud[: sizes[index]]
        gaps = np.linalg.norm(cloud[:, None] - cloud[None], axis=-1)
        farthest = max(farthest, float(gaps.max()))
        np.fill_diagonal(gaps, np.inf)
        nearest.append(gaps.min(axis=1))
    median = float(np.median(np.concatenate(nearest)))
    if not median > 1e-6 * farthest:
        raise ValueError(
            "Particles in `data` coincide: a graph network needs most of them apart."
        )
    return median, farthest
