"""Densities in the plane: grids, normalizers, and what is known of them."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from equistein.energies import AbstractEnergy
from experiments._engine import Key, Particles, Point, Scalar

LogDensities = Callable[[Point], Float[Array, " density"]]
"""The log densities of all points, and of those of each class, up to constants."""


Labeled = tuple[Particles, Array]
"""Points and their labels."""


def log_densities_of(energy: AbstractEnergy) -> LogDensities:
    r"""Return those of an energy: $-E(x)$, and $-E(x) + \log p(y|x)$ of each class."""

    def log_densities(point: Point) -> Float[Array, " density"]:
        found = energy.evaluate(point)
        of_all = -found.energy[None]
        if found.logits is None:
            return of_all
        return jnp.append(of_all, of_all + jax.nn.log_softmax(found.logits))

    return log_densities


@dataclasses.dataclass(frozen=True)
class Plane:
    """A square grid.

    Attributes:
        reach: Half the side of the square.
        num: The number of points along a side.
    """

    reach: float
    num: int

    def values(self, log_densities: LogDensities) -> Float[Array, "num num density"]:
        """Return log densities at the points of the grid."""
        ticks = jnp.linspace(-self.reach, self.reach, self.num)
        points = jnp.stack(jnp.meshgrid(ticks, ticks), axis=-1)
        return jax.vmap(jax.vmap(log_densities))(points)

    def log_normalizers(self, log_densities: LogDensities) -> Float[Array, " density"]:
        """Return the logs of the integrals over the square, by the midpoint rule."""
        side = 2 * self.reach / (self.num - 1)
        return logsumexp(self.values(log_densities), axis=(0, 1)) + 2 * jnp.log(side)


def held_out_likelihood(
    plane: Plane, points: Particles, energy: AbstractEnergy
) -> dict[str, Scalar]:
    """Return the log-likelihood of held-out points, which is followed in a fit."""
    normalizer = plane.log_normalizers(log_densities_of(energy))[0]
    mean = jnp.mean(jax.vmap(energy.log_density)(points))
    return {"log_likelihood": mean - normalizer}


@dataclasses.dataclass(frozen=True)
class KnownDensity:
    """A density that is known.

    Attributes:
        log_densities: Normalized ones, of all and of each class.
        samples: From a key and a number, samples of all, and of each class.
    """

    log_densities: LogDensities
    samples: Callable[[Key, int], list[Particles]]

    def log_likelihood(self, points: Particles) -> Scalar:
        """Return the mean log-likelihood of points."""
        return jnp.mean(jax.vmap(self.log_densities)(points)[:, 0])
