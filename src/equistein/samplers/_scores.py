"""What the samplers do with scores."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Int

from equistein._types import Key, Particles, Point, Scalar
from equistein.samplers._schedules import Schedule, step_size_at, StepSize


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


def langevin_update(
    key: Key,
    step: Scalar,
    scores: Particles,
    step_size: StepSize,
) -> Particles:
    r"""Return $\eta s + \sqrt{2 \eta}\, \xi$ for each particle, to be projected."""
    rate = step_size_at(step_size, step)
    noise = jr.normal(key, scores.shape, scores.dtype)
    return rate * scores + jnp.sqrt(2 * rate) * noise


def rms(vectors: Float[Array, "n *shape"]) -> Scalar:
    """Return the root mean square length of a vector."""
    return jnp.sqrt(jnp.sum(vectors**2) / len(vectors))


def everywhere(point: Point) -> Point:
    """Return a point itself: the projection of particles that live everywhere."""
    return point


def check_projection(
    name: str, project: Callable[[Point], Point], shape: tuple[int, ...]
) -> None:
    """Raise `ValueError` unless a projection takes points of a shape and keeps it."""
    wanted = f"{name}'s `project` must take points of shape {shape} and keep it, but"
    point = jax.ShapeDtypeStruct(shape, jnp.zeros(()).dtype)
    try:
        projected = jax.eval_shape(project, point)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{wanted} failed: {error}") from error
    if getattr(projected, "shape", None) != shape:
        raise ValueError(f"{wanted} it returned {projected!r}.")
