"""Checks of arrays at the public boundary."""

from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from equistein._numbers import is_integer
from equistein._types import Keys


def check_particles(particles: Any, name: str) -> Float[Array, "particle *shape"]:
    """Return `particles` as an array; raise `ValueError` unless floating and finite.

    While something is traced the numbers are not looked at.
    """
    if particles is None:
        raise ValueError(f"`{name}` are missing: give an array of shape (n, *shape).")
    try:
        particles = on_device(particles)
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"`{name}` must be an array of numbers: {error}") from None
    if particles.ndim < 2 or 0 in particles.shape:
        raise ValueError(
            f"`{name}` must have shape (n, *shape) with at least one point, but got "
            f"shape {particles.shape}. Stack the points on axis 0; points on the line "
            "have shape (1,)."
        )
    if particles.dtype not in (jnp.float32, jnp.float64):
        raise ValueError(
            f"`{name}` must be single or double precision floating point, but got "
            f"{particles.dtype}: use {name}.astype(float)."
        )
    if isinstance(particles, Tracer):
        return particles
    finite = np.isfinite(np.asarray(particles))
    bad = ~np.all(finite, axis=tuple(range(1, particles.ndim)))
    if np.any(bad):
        raise ValueError(
            f"`{name}` must be finite, but {np.sum(bad)} of {len(particles)} are "
            f"not, the first at index {np.argmax(bad)}."
        )
    return particles


def on_device(values: Any) -> Array:
    """Return numbers as a JAX array; `jnp.asarray` would compile for each shape."""
    return values if isinstance(values, Array) else jax.device_put(np.asarray(values))


def as_keys(key: Any) -> Keys:
    """Return a key, or several; an integer n is `jax.random.key(n)`."""
    if is_integer(key) and key >= 0:
        return jr.key(int(key))
    if isinstance(key, Array) and (
        jnp.issubdtype(key.dtype, jax.dtypes.prng_key) or key.dtype == jnp.uint32
    ):
        return key
    raise ValueError(
        "`key` must be jax.random.key(0), or an integer from 0 on that makes one; "
        f"several are jax.random.split(key, 4). Got {key!r}."
    )
