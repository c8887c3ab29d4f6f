"""The lengths of a fit, set by the data where the settings leave them open."""

import equinox as eqx
import jax.numpy as jnp

from equistein._types import Scalar
from equistein.energies import AbstractEnergy, FormulasEnergy, NoiseEnergy
from equistein.training._config import FitConfig

_MENDED = 6.0  # times the least noise, up to which an annealing takes both steps


class Lengths(eqx.Module):
    """Steps, clip and noise, as arrays: other data needs no other compilation.

    For a `NoiseEnergy` they are those at its least noise, and set by it.

    Args:
        config: The settings.
        reach: The largest coordinate of the data.
        energy: The energy.
    """

    langevin: Scalar
    stein_step: Scalar
    score_clip: Scalar
    noise: Scalar

    def __init__(
        self, config: FitConfig, reach: Scalar, energy: AbstractEnergy | None = None
    ):
        def given(value: float | None, otherwise: Scalar) -> Scalar:
            return otherwise if value is None else jnp.asarray(value, reach.dtype)

        finest, steepest, noise = (0.01 * reach) ** 2, 450 / reach, 0.02 * reach
        share = 1.0
        levels = levels_of(energy)
        if levels is not None:
            noise = levels.noise
            # The score of blurred points has the norm sqrt(size) / noise.
            finest = noise**2
            steepest = max(20.0, 3 * levels.network.size**0.5) / noise
            share = levels.stein_share()
        self.langevin = given(config.langevin, finest)
        self.stein_step = given(config.stein_step, share * self.langevin)
        self.score_clip = given(config.score_clip, steepest)
        self.noise = noise if levels is not None else given(config.noise, noise)

    def scaled(self, factor: Scalar) -> "Lengths":
        """Return the same with both steps multiplied by a factor."""
        steps = (self.langevin * factor, self.stein_step * factor)
        return eqx.tree_at(lambda s: (s.langevin, s.stein_step), self, steps)

    def at(self, noise: Scalar) -> "Lengths":
        """Return what they are at another level of noise: they grow with it.

        Beyond six times the least noise no step is left but the flow from level to
        level: there the weights of modes are decided, which long chains would take from
        where the score is least certain.
        """
        ratio = noise / self.noise
        steps = jnp.where(ratio <= _MENDED, ratio**2, 0)
        return eqx.tree_at(
            lambda s: (s.langevin, s.stein_step, s.score_clip, s.noise),
            self,
            (
                self.langevin * steps,
                self.stein_step * steps,
                self.score_clip / ratio,
                noise,
            ),
        )


def levels_of(energy: AbstractEnergy | None) -> NoiseEnergy | None:
    """Return the energies of all levels of noise, if there are such."""
    if isinstance(energy, FormulasEnergy):
        return energy.energy
    return energy if isinstance(energy, NoiseEnergy) else None
