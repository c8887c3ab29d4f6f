"""Values at many points."""

from typing import Any

import equinox as eqx
import jax

from equistein._types import Particles


@eqx.filter_jit
def values_at(function: Any, points: Particles) -> Any:
    """Return the value at each point, in blocks of 256."""
    return jax.lax.map(function, points, batch_size=256)
