"""Particle systems, and the Wasserstein distance of sets of their clouds."""

import abc
import itertools
import math
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from scipy.optimize import linear_sum_assignment

from equistein._check_arguments import check_finite_arguments
from equistein._types import Particles, Point, Scalar
from equistein.groups import PointCloud
from equistein.kernels import closed_form, RBF

_STARTS = 2  # alignments a search continues with
_ROUNDS = 2  # of assignment and rotation
_CHUNK = 2**22  # numbers in memory


class AbstractParticleDensity(eqx.Module):
    """A density of clouds of particles with reference samples to compare with."""

    num_particles: eqx.AbstractVar[int]
    dim: eqx.AbstractVar[int]

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """A short name of the system, such as `dw4`."""

    @property
    @abc.abstractmethod
    def group(self) -> PointCloud:
        """The symmetry of the density."""

    @property
    def degrees_of_freedom(self) -> int:
        """The dimension of the subspace that the density lives on."""
        return (self.num_particles - 1) * self.dim

    @property
    @abc.abstractmethod
    def distance_limits(self) -> tuple[float, float]:
        """The range of pair distances that a histogram of them covers."""

    @property
    @abc.abstractmethod
    def num_reference(self) -> int:
        """The number of reference samples to compare with."""

    @property
    @abc.abstractmethod
    def state_energies(self) -> tuple[float, ...]:
        """The energies of the known states, lowest first; none where they are many."""

    @abc.abstractmethod
    def log_density(self, point: Point) -> Scalar:
        """Return the log density of one point, perhaps up to a constant."""

    @abc.abstractmethod
    def reference(self, num: int, part: int) -> Particles:
        """Return the reference samples of one of several independent runs."""

    @abc.abstractmethod
    def known_states(self, points: Particles) -> Int[Array, " n"]:
        """Return the index of the known state that each point belongs to."""


@check_finite_arguments
@eqx.filter_jit
def pair_distances(points: Particles) -> Float[Array, "n pair"]:
    """Return the distance of every pair of particles of each cloud."""
    first, second = np.triu_indices(points.shape[1], k=1)
    gaps = points[:, first] - points[:, second]
    return jnp.sqrt(jnp.sum(gaps**2, axis=-1))


class GeometricWasserstein(NamedTuple):
    """The distance of two sets of clouds, and whether it is exact or a bound."""

    value: float
    is_exact: bool


@check_finite_arguments
def geometric_wasserstein(
    first: Float[Array, "n *shape"], second: Float[Array, "n *shape"], group: PointCloud
) -> GeometricWasserstein:
    r"""The Wasserstein-2 distance of two sets of clouds, up to the group.

    $$W_2^2 = \min_\sigma \frac1n \sum_i \min_{g} |x_i - g\, y_{\sigma(i)}|^2$$

    over the permutations $\sigma$ of the samples and the elements g of `PointCloud`.
    The inner minimum is exact where the kernel `Equivariant` has a closed form (at most
    five like particles, in the plane or in space). Otherwise it is an upper bound, from
    the principal axes by alternating assignment and rotation: tight for clouds near
    each other, up to 12 % too large for random sets of six like particles. Takes $n^2$
    alignments: compare some hundreds of clouds, and as many exact ones for the floor.

    References:
        Klein, Krämer and Noé (2023), Equivariant flow matching, for the cost.
    """
    group.check_shape(first.shape[1:])
    base = RBF(1.0)
    form = closed_form(base, group)
    if form is not None:
        rows = max(1, _CHUNK // (len(second) * form.num_copies))
        blocks = (first[i : i + rows] for i in range(0, len(first), rows))
        costs_of = eqx.filter_jit(form.squared_orbit_distances)
        costs = np.concatenate([costs_of(base, each, second) for each in blocks])
    else:
        x, y = (np.asarray(group.project_points(x), float) for x in (first, second))
        upright = _principal(y)
        costs = np.stack([_align(cloud, upright, group) for cloud in _principal(x)])
    rows, columns = linear_sum_assignment(costs)
    value = math.sqrt(max(float(np.mean(costs[rows, columns])), 0.0))
    return GeometricWasserstein(value, form is not None)


def _principal(clouds: np.ndarray) -> np.ndarray:
    """Rotate clouds to their principal axes."""
    axes = np.linalg.svd(clouds)[2]
    # Where the axes are a reflection, one of them is reversed.
    axes[:, -1] *= np.linalg.det(axes)[:, None]
    return clouds @ np.swapaxes(axes, 1, 2)


def _align(cloud: np.ndarray, others: np.ndarray, group: PointCloud) -> np.ndarray:
    """Return the squared distance of one cloud to the orbit of each other one."""
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=group.dim)))
    if not group.reflections:
        signs = signs[np.prod(signs, axis=1) > 0]
    labels = np.array(group.species)
    forbidden = np.where(labels[:, None] == labels[None, :], 0.0, np.inf)
    turned = others[:, None] * signs[:, None]
    costs = _pair_costs(cloud, turned) + forbidden
    rough = np.sum(np.min(costs, axis=-1), axis=-1)
    rough += np.sum(np.min(costs, axis=-2), axis=-1)
    best = np.argsort(rough, axis=1)[:, :_STARTS]
    turned = np.take_along_axis(turned, best[:, :, None, None], axis=1)
    size = turned.shape[:2]
    turned = turned.reshape(-1, *cloud.shape)
    for _ in range(_ROUNDS):
        costs = _pair_costs(cloud, turned) + forbidden
        order = np.stack([linear_sum_assignment(cost)[1] for cost in costs])
        turned = np.take_along_axis(turned, order[:, :, None], axis=1)
        left, _, right = np.linalg.svd(np.swapaxes(turned, 1, 2) @ cloud)
        if not group.reflections:
            left[:, :, -1] *= np.linalg.det(left @ right)[:, None]
        turned = turned @ (left @ right)
    gaps = np.sum((turned - cloud) ** 2, axis=(1, 2))
    return np.min(gaps.reshape(size), axis=1)


def _pair_costs(cloud: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the squared distances of particles, `(..., particle, other particle)`."""
    products = np.einsum("ia,...ja->...ij", cloud, others)
    return np.sum(others**2, axis=-1)[..., None, :] - 2 * products
