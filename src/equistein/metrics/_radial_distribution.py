"""The radial distribution function of particles in a periodic cell."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from equistein._check_arguments import check_finite_arguments
from equistein._numbers import check_integers
from equistein._types import Particles
from equistein.groups import PeriodicCloud


class RadialDistribution(NamedTuple):
    """The function g at the centers of its bins, with standard errors."""

    distances: np.ndarray
    values: np.ndarray
    errors: np.ndarray


@check_finite_arguments
def radial_distribution(
    points: Particles,
    group: PeriodicCloud,
    *,
    num_bins: int = 100,
    species: tuple[int, int] | None = None,
) -> RadialDistribution:
    r"""Return how often pairs of particles are found at a distance.

    $$g(r) = \frac{V}{M\, v(r)} \Bigl\langle \sum_{\text{pairs}}
      1[r_{ij} \text{ in the bin}] \Bigr\rangle$$

    for M pairs in a cell of volume V, with the volume $v(r)$ of the shell that is the
    bin: 1 where particles do not see each other. Distances are those to the nearest
    images, up to half the least distance of two faces. The standard errors take the
    points as independent.

    Args:
        points: Frames in the cell, `(frame, atom, dim)`, wrapped or not.
        group: The particles and their cell.
        num_bins: The number of bins, all of the same width.
        species: Two of `group.species`, of whose particles the pairs are; by default
            all pairs.
    """
    check_integers("radial_distribution", num_bins=num_bins)
    group.check_shape(points.shape[1:])
    pairs = np.stack(np.triu_indices(len(group.species), k=1))
    if species is not None:
        kinds = np.sort(np.array(group.species)[pairs], axis=0).T
        pairs = pairs[:, np.all(kinds == np.sort(species), axis=1)]
    if not pairs.size:
        raise ValueError(
            f"`radial_distribution` finds no pairs of `species` {species}: give two of "
            f"{sorted(set(group.species))}, such as (0, 0)."
        )
    reach = group.longest_cutoff
    edges = np.linspace(0, reach, num_bins + 1)
    counts = np.asarray(_counts(points, group, jnp.asarray(pairs), num_bins))
    ball = {1: 2.0, 2: np.pi, 3: 4 / 3 * np.pi}[group.dim]
    shells = ball * np.diff(edges**group.dim)
    each = counts * group.volume / (pairs.shape[1] * shells)
    errors = each.std(axis=0) / (len(each) - 1 or np.nan) ** 0.5
    return RadialDistribution((edges[1:] + edges[:-1]) / 2, each.mean(axis=0), errors)


@eqx.filter_jit
def _counts(
    points: Particles, group: PeriodicCloud, pairs: Int[Array, "2 pair"], num_bins: int,
) -> Float[Array, "frame bin"]:  # fmt: skip
    def of_frame(point):
        gaps = group.minimum_image(point[pairs[0]] - point[pairs[1]])
        lengths = jnp.sqrt(jnp.sum(gaps**2, axis=-1))
        bins = jnp.floor(lengths * num_bins / group.longest_cutoff).astype(int)
        return jnp.zeros(num_bins, point.dtype).at[bins].add(1, mode="drop")

    return jax.lax.map(of_frame, points)
