"""The interface of invariant feature maps."""

import abc
import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein._products import matmul
from equistein._types import Features, Point, Scalar
from equistein.groups import AbstractGroup, PeriodicCloud

SMOOTHED = "the length below which it is smoothed, such as 1e-2"
MAX_PRODUCT = 64  # particles whose pairs come from a product


class AbstractFeatures(eqx.Module):
    """A smooth map F that is constant on the orbits of a group."""

    @abc.abstractmethod
    def __call__(self, point: Point) -> Features:
        """Return $F(x)$."""

    def dot(self, coefficients: Float[Array, " feature"], point: Point) -> Scalar:
        r"""Return $c \cdot F(x)$, the part of an energy that is linear in F."""
        return matmul(coefficients.astype(point.dtype), self(point))

    def size(self, shape: tuple[int, ...]) -> int:
        """Return the number of features of points of this shape."""
        point = jax.ShapeDtypeStruct(shape, jnp.zeros(()).dtype)
        return jax.eval_shape(self.__call__, point).size

    def row_size(self, shape: tuple[int, ...]) -> int:
        """Return how many numbers the derivatives at one point hold, about."""
        return self.size(shape) * math.prod(shape)

    def unbounded(self, coefficients: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        r"""Return which features let $c \cdot F$ fall without end; by default none."""
        return np.zeros(len(coefficients), bool)

    def held_coefficients(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return where fits hold `unbounded` features, by default at 0: left out."""
        return np.zeros(self.size(shape))

    def penalties(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return how strongly the ridge of a fit acts on each feature."""
        return np.ones(self.size(shape))

    def in_double(self, points: Any) -> np.ndarray:
        """Return the features of points in double precision, whatever JAX's is."""
        with jax.enable_x64(True):
            values = eqx.filter_jit(jax.lax.map)
            return np.asarray(values(self, np.asarray(points, float), batch_size=64))

    def laplacian(self, point: Point) -> Features:
        r"""Return $\sum_a \partial^2 F / \partial x_a^2$, one number a feature."""
        return self.derivatives(point)[1]

    def jacobian(self, point: Point) -> Float[Array, "feature dim"]:
        """Return dF/dx with the point flattened, shape `(feature, dim)`."""
        num = jax.eval_shape(self, point).size
        derivative = jax.jacrev if num <= point.size else jax.jacfwd
        return derivative(self.__call__)(point).reshape(num, -1)

    def derivatives(self, point: Point) -> tuple[Float[Array, "feature dim"], Features]:
        """Return dF/dx with the point flattened, and the Laplacian of F."""
        slopes, laplacian = derivatives_of(self.__call__, point)
        return slopes.reshape(len(slopes), -1), laplacian

    @abc.abstractmethod
    def group(self, shape: tuple[int, ...]) -> AbstractGroup:
        """Return the group whose orbits F is constant on, or raise `ValueError`."""


def derivatives_of(
    function: Callable[[Point], Features], point: Point
) -> tuple[Float[Array, "feature *shape"], Features]:
    """Return the Jacobian and the Laplacian of a function, in forward mode."""
    axes = jnp.eye(point.size, dtype=point.dtype).reshape(-1, *point.shape)

    def along(axis):
        slope = lambda x: jax.jvp(function, (x,), (axis,))[1]
        return jax.jvp(slope, (point,), (axis,))

    slopes, bends = jax.vmap(along)(axes)
    return slopes.T.reshape(-1, *point.shape), jnp.sum(bends, axis=0)


def pair_differences(
    point: Float[Array, "atom dim"], pairs: tuple[np.ndarray, np.ndarray] | None = None
) -> Float[Array, "pair dim"]:
    """Return the difference of each pair of particles.

    The pairs are given by their first and second particles; by default they are all,
    as in `np.triu_indices(n, k=1)`.
    """
    num = len(point)
    first, second = np.triu_indices(num, k=1) if pairs is None else pairs
    # Else a product: the derivative of indexing is a scatter, which is slow.
    if num > MAX_PRODUCT:
        return point[first] - point[second]
    incidence = np.eye(num)[first] - np.eye(num)[second]
    return matmul(jnp.asarray(incidence, point.dtype), point)


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


def pair_sum(
    pair_energy: Callable[[Array], tuple[Array, Array]],
    point: Point,
    cloud: PeriodicCloud | None = None,
) -> tuple[Scalar, Point]:
    r"""Return $\sum_{i<j} u(|x_i - x_j|^2)$ and its gradient, in one pass.

    `pair_energy` returns u and $u' = du / d(r^2)$ of an array of squared distances,
    those of a particle to itself replaced by 1. The gradient, $2 \sum_j u'(r_{ij}^2)
    (x_i - x_j)$, is one product. With a `cloud` the nearest images are meant.
    """
    num, dim = point.shape
    gaps = [column[:, None] - column[None, :] for column in point.T]
    gaps = gaps if cloud is None else cloud.nearest(gaps)
    squares = sum(gap**2 for gap in gaps)
    # A dense square of all pairs: indexing has a scatter as its derivative.
    same = jnp.eye(num, dtype=bool)
    energies, slopes = pair_energy(jnp.where(same, 1, squares))
    energies, slopes = (jnp.where(same, 0, terms) for terms in (energies, slopes))
    ones = jnp.ones(num, point.dtype)
    if cloud is None:
        sums = matmul(slopes, jnp.concatenate([point, ones[:, None]], 1))
        gradient = 2 * (sums[:, dim:] * point - sums[:, :dim])
    else:
        gradient = 2 * jnp.stack([matmul(slopes * gap, ones) for gap in gaps], axis=1)
    # Products, for a sum would have the energies computed again, and slowly.
    total = matmul(ones, matmul(energies, ones))
    return total / 2, gradient
