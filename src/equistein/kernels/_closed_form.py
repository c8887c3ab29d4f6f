"""What an average over a compact group in closed form offers its kernel."""

import abc

import equinox as eqx
from jaxtyping import Array, Float

from equistein._types import Point, Scalar


class AbstractClosedForm(eqx.Module):
    r"""The Haar mean $K(x, y) = \int k(x, g y)\, R_g\, dg$ of a Gaussian kernel.

    Points come as rows: flattened, `(n, dim)`.
    """

    @property
    @abc.abstractmethod
    def num_copies(self) -> int:
        """The number of terms the Gram matrix has for each pair of points."""

    @abc.abstractmethod
    def block_force(
        self,
        targets: Float[Array, "target dim"],
        sources: Float[Array, "source dim"],
        scores: Float[Array, "source dim"],
        length: Scalar,
    ) -> Float[Array, "target dim"]:
        """Return the sum of the Stein terms over the sources."""

    @abc.abstractmethod
    def matrix(self, x: Point, y: Point, length: Scalar) -> Float[Array, "dim dim"]:
        """Return $K(x, y)$ on flattened points."""

    @abc.abstractmethod
    def squared_orbit_distances(
        self, x: Float[Array, "n *shape"], y: Float[Array, "m *shape"]
    ) -> Float[Array, "n m"]:
        r"""Return $\min_g |x_i - g y_j|^2$."""

    @abc.abstractmethod
    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise `ValueError` unless the form is known for points of this shape."""
