"""Checks of arrays that a user gives."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from equistein._numbers import is_integer


def check_particles(particles: Any, name: str) -> Float[Array, "particle *shape"]:
    """Return `particles` as a floating-point array of at least one finite point.

    While something is traced the numbers are not looked at.

    Raises:
        ValueError: If it is not one, naming what came.
    """
    if particles is None:
        raise ValueError(f"`{name}` are missing: give an array of shape (n, *shape).")
    try:
        particles = jnp.asarray(particles)
    except (TypeError, ValueError) as error:
        raise ValueError(f"`{name}` must be an array of numbers: {error}") from None
    if particles.ndim < 2 or 0 in particles.shape:
        raise ValueError(
            f"`{name}` must have shape (n, *shape) with at least one point, but got "
            f"shape {particles.shape}. Stack the points on axis 0; points on the line "
            "have shape (1,)."
        )
    if not jnp.issubdtype(particles.dtype, jnp.floating):
        raise ValueError(
            f"`{name}` must be floating point, but got {particles.dtype}: use "
            f"{name}.astype(float)."
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


def check_num(num: int) -> None:
    """Raise unless `num` is a number of samples.

    Raises:
        ValueError: If `num` is not a positive integer.
    """
    if not is_integer(num) or num < 1:
        raise ValueError(f"`sample` needs `num`, an integer >= 1, but got {num!r}.")
