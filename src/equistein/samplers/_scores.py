"""What the samplers do with scores."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from equistein._types import Key, Particles, Point, Scalar

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


def langevin_update(
    key: Key,
    number: Scalar,
    scores: Particles,
    step_size: float | Schedule,
    project: Callable[[Point], Point],
) -> Particles:
    r"""Return $\eta s + \sqrt{2 \eta}\, \xi$ for each particle.

    Args:
        key: The source of the noise.
        number: The number of the step.
        scores: The scores, tempered and clipped.
        step_size: The step $\eta$, a number or a function of the step's number.
        project: What puts the update onto the particles' subspace.
    """
    rate = step_size(number) if callable(step_size) else step_size
    rate = jnp.maximum(jnp.asarray(rate, scores.dtype), 0)  # rounding may pass zero
    noise = jr.normal(key, scores.shape, scores.dtype)
    return jax.vmap(project)(rate * scores + jnp.sqrt(2 * rate) * noise)


def rms(vectors: Float[Array, "n *shape"]) -> Scalar:
    """Return the root mean square length of a vector."""
    return jnp.sqrt(jnp.sum(vectors**2) / len(vectors))
