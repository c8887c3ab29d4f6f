"""A grid on which planar densities are integrated and drawn."""

import dataclasses
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from equistein._types import LogDensity, Particles, Scalar
from equistein.energies import AbstractEnergy


@dataclasses.dataclass(frozen=True)
class Plane:
    """A square grid.

    Attributes:
        reach: Half the side of the square.
        num: The number of points along a side.
    """

    reach: float
    num: int

    @property
    def points(self) -> Particles:
        ticks = jnp.linspace(-self.reach, self.reach, self.num)
        x, y = jnp.meshgrid(ticks, ticks)
        return jnp.stack([x, y], axis=-1).reshape(-1, 2)

    def log_normalizer(self, log_density: LogDensity) -> Scalar:
        """Return the log of the integral over the square, by the midpoint rule."""
        side = 2 * self.reach / (self.num - 1)
        values = jax.vmap(log_density)(self.points)
        return logsumexp(values) + 2 * jnp.log(side)

    def draw(self, log_densities: Sequence[LogDensity], num: int) -> np.ndarray:
        """Return normalized log densities on another grid, `(density, num, num)`."""
        points = Plane(self.reach, num).points

        def normalized(log_density):
            values = jax.vmap(log_density)(points) - self.log_normalizer(log_density)
            return values.reshape(num, num)

        return np.stack([np.asarray(normalized(f)) for f in log_densities])

    def label(self, logits: Callable, num: int) -> np.ndarray:
        """Return the likeliest class on another grid, `(num, num)`, as numbers."""
        values = jax.vmap(logits)(Plane(self.reach, num).points)
        return np.asarray(jnp.argmax(values, axis=1), float).reshape(num, num)


def likelihood_monitor(
    plane: Plane, held_out: Particles
) -> Callable[[AbstractEnergy], dict[str, Scalar]]:
    """Return the function that follows the held-out log-likelihood of a fit."""
    # A partial's arrays are inputs of the compiled function, not constants in it.
    return eqx.Partial(_likelihood, plane, held_out)


def _likelihood(
    plane: Plane, held_out: Particles, energy: AbstractEnergy
) -> dict[str, Scalar]:
    mean = jnp.mean(jax.vmap(energy.log_density)(held_out))
    return {"log_likelihood": mean - plane.log_normalizer(energy.log_density)}
