"""The exponential moving average of the weights."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from equistein.energies import AbstractEnergies


def moving_average(
    decay: float,
    average: AbstractEnergies,
    energy: AbstractEnergies,
    update: Int[Array, ""],
) -> AbstractEnergies:
    r"""Return the exponential moving average of an energy's weights after an update.

    $$\bar\theta \leftarrow d\, \bar\theta + (1 - d)\, \theta, \qquad
      d = \min\bigl(\mathrm{decay},\, n / (n + 9)\bigr)$$

    in the n-th update, so that the mean is shorter at first.
    """
    now = jnp.minimum(decay, update / (update + 9))

    def blend(old, new):
        if not eqx.is_inexact_array(new):
            return new
        part = now.astype(new.dtype)
        return part * old + (1 - part) * new

    return jax.tree.map(blend, average, energy)
