"""Two modes that are far apart."""

import jax.numpy as jnp

WEIGHT, GAP, LOG_Z = 0.3, 4.0, 2.0


def two_modes(x):
    """Two normals of widths 1 and .6, far apart; 30 % of the mass are in the first."""
    log_p = [
        jnp.log(weight / (2 * jnp.pi * scale**2))
        - jnp.sum((x - at) ** 2) / 2 / scale**2
        for weight, scale, at in ((WEIGHT, 1.0, GAP), (1 - WEIGHT, 0.6, -GAP))
    ]
    return jnp.logaddexp(*log_p) + LOG_Z
