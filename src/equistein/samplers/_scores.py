"""What the samplers do with scores."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein._types import Scalar

Schedule = Callable[[Any], Any]


def clipped(
    scores: Float[Array, "n *shape"], largest: float | Scalar | None
) -> Float[Array, "n *shape"]:
    """Return the scores with those longer than `largest` shortened to it."""
    if largest is None:
        return scores
    norms = jnp.sqrt(jnp.sum(scores.reshape(len(scores), -1) ** 2, axis=1))
    scale = largest / jnp.maximum(norms, largest)
    return scores * scale.reshape(-1, *[1] * (scores.ndim - 1))


def rms(vectors: Float[Array, "n *shape"]) -> Scalar:
    """Return the root mean square length of a vector."""
    return jnp.sqrt(jnp.sum(vectors**2) / len(vectors))
