"""What the samplers do with scores."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Int

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


def inverse_temperature(
    annealing: Schedule | None, step: Int[Array, ""], dtype: jnp.dtype
) -> Scalar:
    r"""Return $\beta$ at a step; 1 without a schedule."""
    if annealing is None:
        return jnp.ones((), dtype)
    return jnp.asarray(annealing(step.astype(dtype)), dtype)


def check_annealing(name: str, annealing: Schedule | None) -> None:
    """Raise `ValueError` unless the schedule is a function or None.

    Raises:
        ValueError: If it is not.
    """
    if annealing is not None and not callable(annealing):
        raise ValueError(
            f"{name} needs `annealing`, a function of the step number such as "
            f"Geometric(1_000), but got {annealing!r}."
        )


def refuse_repellers(name: str, repellers: object) -> None:
    """Raise `ValueError` if independent chains are given repellers.

    Raises:
        ValueError: If there are any.
    """
    if repellers is not None:
        raise ValueError(
            f"{name} chains are independent: leave `repellers` out, or use SVGD."
        )


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
