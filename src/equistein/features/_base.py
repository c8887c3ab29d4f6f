"""The interface of invariant feature maps."""

import abc
from collections.abc import Hashable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein._types import Features, Point
from equistein.groups import AbstractGroup, encode_species, PointCloud

_MAX_PRODUCT = 32  # particles whose pairs come from a product


class AbstractFeatures(eqx.Module):
    """A smooth map F that is constant on the orbits of a group."""

    @abc.abstractmethod
    def __call__(self, point: Point) -> Features:
        """Return $F(x)$."""

    @abc.abstractmethod
    def laplacian(self, point: Point) -> Features:
        r"""Return $\sum_a \partial^2 F / \partial x_a^2$, one number a feature."""

    @abc.abstractmethod
    def group(self, shape: tuple[int, ...]) -> AbstractGroup:
        """Return the group whose orbits F is constant on.

        Raises:
            ValueError: If F is not defined on points of this shape.
        """


def pair_differences(point: Float[Array, "atom dim"]) -> Float[Array, "pair dim"]:
    """Return the difference of each pair, as `np.triu_indices(n, k=1)` lists them.

    Of few particles by a product with the pairs' incidence matrix, whose derivative is
    a product too; that of indexing is a scatter, which is slow.
    """
    num = len(point)
    first, second = np.triu_indices(num, k=1)
    if num > _MAX_PRODUCT:
        return point[first] - point[second]
    rows = np.arange(len(first))
    incidence = np.zeros((len(first), num))
    incidence[rows, first], incidence[rows, second] = 1, -1
    return jnp.matmul(jnp.asarray(incidence, point.dtype), point, precision="highest")


def smooth_norm(
    vector: Float[Array, "*batch dim"], epsilon: float
) -> Float[Array, "*batch"]:
    r"""Return $\sqrt{|v|^2 + \epsilon^2}$ over the last axis: smooth at $v = 0$."""
    return jnp.sqrt(jnp.sum(vector**2, axis=-1) + epsilon**2)


def smooth_norm_laplacian(
    distance: Float[Array, "*batch"], dim: int, epsilon: float
) -> Float[Array, "*batch"]:
    r"""Return the Laplacian of $s = \sqrt{|v|^2 + \epsilon^2}$ in $v$, given $s$.

    $$\Delta s = d/s - |v|^2/s^3 = (d - 1)/s + \epsilon^2/s^3$$
    """
    return (dim - 1) / distance + epsilon**2 / distance**3


def check_epsilon(name: str, epsilon: float) -> float:
    """Return `epsilon` if it is a positive number.

    Raises:
        ValueError: If it is not.
    """
    if not epsilon > 0:
        raise ValueError(
            f"{name} needs `epsilon` > 0, the length below which it is smoothed, but "
            f"got {epsilon!r}. The default, 1e-2, suits lengths of order one."
        )
    return float(epsilon)


def check_species(name: str, species: Sequence[Hashable]) -> tuple[int, ...]:
    """Return the labels of at least two particles as numbers.

    Raises:
        ValueError: If there are fewer.
    """
    encoded = encode_species(species)
    if len(encoded) < 2:
        raise ValueError(
            f"{name} needs `species` of at least two particles, but got {species!r}."
        )
    return encoded


def pair_blocks(species: tuple[int, ...]) -> list[np.ndarray]:
    """Return the indices of the pairs of each pair of species.

    The pairs are numbered as `np.triu_indices(len(species), k=1)` lists them.
    """
    first, second = np.triu_indices(len(species), k=1)
    labels = np.array(species)
    kinds = np.sort(np.stack([labels[first], labels[second]]), axis=0).T
    return [
        np.flatnonzero((kinds == kind).all(axis=1)) for kind in np.unique(kinds, axis=0)
    ]


def point_cloud(
    name: str, species: tuple[int, ...], shape: tuple[int, ...]
) -> PointCloud:
    """Return the group of features of distances on points of this shape.

    Raises:
        ValueError: If the points are not one vector for each particle.
    """
    if len(shape) != 2 or shape[0] != len(species):
        raise ValueError(
            f"{name} with {len(species)} `species` needs points of shape "
            f"({len(species)}, dim), but got points of shape {shape}. Give one species "
            "label for each particle."
        )
    return PointCloud(species, shape[1])


def jacobian(features: AbstractFeatures, point: Point) -> Float[Array, "feature dim"]:
    """Return dF/dx with the point flattened, shape `(feature, dim)`."""
    num = jax.eval_shape(features, point).size
    derivative = jax.jacrev if num <= point.size else jax.jacfwd
    return derivative(features)(point).reshape(num, -1)
