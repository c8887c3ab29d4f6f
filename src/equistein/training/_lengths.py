"""The lengths of a fit, set by the data where the settings leave them open."""

import equinox as eqx
import jax.numpy as jnp

from equistein._types import Scalar
from equistein.training._config import FitConfig


class Lengths(eqx.Module):
    """Steps, clip and noise, as arrays: other data needs no other compilation.

    Args:
        config: The settings.
        reach: The largest coordinate of the data.
    """

    langevin: Scalar
    stein_step: Scalar
    score_clip: Scalar
    noise: Scalar

    def __init__(self, config: FitConfig, reach: Scalar):
        def given(value: float | None, otherwise: Scalar) -> Scalar:
            return otherwise if value is None else jnp.asarray(value, reach.dtype)

        self.langevin = given(config.langevin, (0.01 * reach) ** 2)
        self.stein_step = given(config.stein_step, self.langevin)
        self.score_clip = given(config.score_clip, 450 / reach)
        self.noise = given(config.noise, 0.02 * reach)

    def scaled(self, factor: Scalar) -> "Lengths":
        """Return the same with both steps multiplied by a factor."""
        steps = (self.langevin * factor, self.stein_step * factor)
        return eqx.tree_at(lambda s: (s.langevin, s.stein_step), self, steps)
