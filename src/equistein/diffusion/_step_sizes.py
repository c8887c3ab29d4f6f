"""The step sizes of reverse diffusion."""

import equinox as eqx
import jax.numpy as jnp

from equistein._types import Scalar

_CORRECTED = 6.0  # times the least noise, up to which particles take other steps


class StepSizes(eqx.Module):
    """Step sizes at the least noise, as arrays: others need no other compilation.

    Args:
        langevin: The Langevin step, in squared units of the points.
        stein: The step of the Stein force, in the same.
        score_clip: The largest norm of a score, in inverse units of the points.
    """

    langevin: Scalar
    stein: Scalar
    score_clip: Scalar

    def scaled(self, factor: Scalar) -> "StepSizes":
        """Return the same with both steps multiplied by a factor."""
        return StepSizes(self.langevin * factor, self.stein * factor, self.score_clip)

    def at(self, ratio: Scalar) -> "StepSizes":
        """Return what they are where the noise is `ratio` times the least.

        They grow with its square. Beyond six times the least noise no step is left but
        the flow from level to level: there the weights of modes are decided, which long
        chains would take from where the score is least certain.
        """
        factor = jnp.where(ratio <= _CORRECTED, ratio**2, 0)
        return StepSizes(
            self.langevin * factor, self.stein * factor, self.score_clip / ratio
        )
