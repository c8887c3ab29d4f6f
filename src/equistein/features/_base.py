"""The interface of invariant feature maps."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein._products import matmul
from equistein._types import Features, Point
from equistein.groups import AbstractGroup

SMOOTHED = "the length below which it is smoothed, such as 1e-2"
_MAX_PRODUCT = 64  # particles whose pairs come from a product


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
    if num > _MAX_PRODUCT:
        return point[first] - point[second]
    rows = np.arange(len(first))
    incidence = np.zeros((len(first), num))
    incidence[rows, first], incidence[rows, second] = 1, -1
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


def jacobian(features: AbstractFeatures, point: Point) -> Float[Array, "feature dim"]:
    """Return dF/dx with the point flattened, shape `(feature, dim)`."""
    num = jax.eval_shape(features, point).size
    derivative = jax.jacrev if num <= point.size else jax.jacfwd
    return derivative(features)(point).reshape(num, -1)
