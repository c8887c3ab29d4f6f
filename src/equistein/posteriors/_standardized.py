"""Flat points in units of a posterior's own widths."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein._types import LogDensity, Scalar


class Coordinates(eqx.Module):
    r"""Coordinates $z = (u - c) / h$ of flat points u.

    Where the center and the widths are the same for coordinates that are swapped, a
    swap acts on z as on u.
    """

    center: Float[Array, " dim"]
    width: Float[Array, " dim"]

    def forward(self, point: Float[Array, "*batch dim"]) -> Float[Array, "*batch dim"]:
        """Return the coordinates of flat points."""
        return (point - _under(self.center, point)) / _under(self.width, point)

    def inverse(self, z: Float[Array, "*batch dim"]) -> Float[Array, "*batch dim"]:
        """Return the flat points of coordinates."""
        return _under(self.center, z) + _under(self.width, z) * z


class StandardizedDensity(eqx.Module):
    r"""The log density of the coordinates, $\log p(u(z)) + \sum_i \log h_i$.

    It integrates to the same evidence.
    """

    log_density: LogDensity
    coordinates: Coordinates

    def __call__(self, z: Float[Array, " dim"]) -> Scalar:
        value = self.log_density(self.coordinates.inverse(z))
        return value + jnp.sum(jnp.log(self.coordinates.width))


def _under(numbers: Float[Array, " dim"], batch: Array) -> Array:
    """Return numbers of each coordinate with the axes of a batch before them."""
    return jnp.expand_dims(numbers, tuple(range(batch.ndim - 1)))
