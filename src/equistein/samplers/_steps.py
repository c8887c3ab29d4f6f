"""What steps are made of: schedules, step sizes, clipped scores, projections."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Int, Num

from equistein._check_arguments import check_arguments
from equistein._numbers import check_integers, check_positive
from equistein._types import Key, Particles, Point, Scalar

Schedule = Callable[[Any], Any]
StepSize = float | Scalar | Schedule
_LEAST_BETA = 1e-3  # inverse temperature below which step sizes grow no further
_DECAY_FRACTION = 0.2  # last part of a run, in which step sizes decay


@check_arguments
class Geometric(eqx.Module):
    r"""From hot to the target: $\beta(t) = \beta_0^{1 - t/T}$, then 1.

    Near the modes $\log p$ has variance $k/2\beta^2$ under $p^\beta$, so this moves
    along the path at constant speed in the Fisher metric.

    Args:
        num_steps: The number of steps $T \ge 1$; an array where one compiled loop
            serves several numbers.
        start: The first inverse temperature, $0 < \beta_0 \le 1$.
    """

    num_steps: int | Float[Array, ""]
    start: float = 1e-3

    def __check_init__(self):
        if isinstance(self.num_steps, int):
            check_integers("Geometric", num_steps=self.num_steps)
        if not 0 < self.start <= 1:
            raise ValueError(f"Geometric needs 0 < `start` <= 1, but got {self.start}.")

    def __call__(self, step: Num[Array, ""]) -> Scalar:
        left = 1 - jnp.minimum(_as_float(step) / self.num_steps, 1)
        return jnp.exp(left * jnp.log(self.start))


class DecayingStep(eqx.Module):
    """A step size that falls to 5 % over the last part, the tail, of a run."""

    step_size: Scalar
    body: int
    tail: int

    def __call__(self, step: Any) -> Scalar:
        done = jnp.clip((step - self.body) / self.tail, 0, 1)
        return self.step_size * (1 - 0.95 * done)


@check_arguments
def thermal(
    step_size: float,
    annealing: Geometric,
    num_steps: int | Int[Array, ""],
    *,
    power: float = 0.5,
    last: float = 0.0,
) -> Callable[[Any], Any]:
    r"""A schedule of step sizes, for an optimizer or `langevin`, by the temperature.

    $$\varepsilon(t) = \varepsilon_0 \max(\beta(t), 10^{-3})^{-p}
      \max(q, \min(1, 5 (T - t) / T))$$

    Modes are $\beta^{-1/2}$ times wider while hot, and steps a fixed fraction of the
    width: $p = 1/2$ for the step size of a normalizing optimizer such as `vector_adam`,
    in the units of the points, $p = 1$ for `langevin` and `sgd`, in squared units. The
    decay over the last fifth lets the particles settle.

    Args:
        step_size: The step size $\varepsilon_0$ at the target, before it decays.
        annealing: The schedule of $\beta$.
        num_steps: The number of steps $T$ of the whole run.
        power: The power $p$ of the temperature.
        last: The fraction $q$ of the step that is left at the end.
    """

    def schedule(step):
        hot = jnp.maximum(annealing(step), _LEAST_BETA) ** -power
        left = (num_steps - _as_float(step)) / (_DECAY_FRACTION * num_steps)
        return step_size * hot * jnp.clip(left, last, 1)

    return schedule


def _as_float(step: Num[Array, ""]) -> Scalar:
    """Return a step count, which optimizers give as an integer, as a float."""
    return step if jnp.issubdtype(step.dtype, jnp.floating) else step.astype(float)


class ScaledSchedule(eqx.Module):
    """A schedule whose values are multiplied by a factor."""

    schedule: Schedule
    factor: float | Scalar

    def __call__(self, step: Any) -> Any:
        return self.schedule(step) * self.factor


def scale_steps(step_size: StepSize, factor: float | Scalar) -> StepSize:
    """Return a step size multiplied by a factor."""
    if callable(step_size):
        return ScaledSchedule(step_size, factor)
    return step_size * factor


def check_fraction(name: str, **fractions: float) -> None:
    """Raise `ValueError` unless numbers are between 0 and 1."""
    for argument, value in fractions.items():
        if not 0 < value < 1:
            raise ValueError(f"{name} needs 0 < `{argument}` < 1, but got {value!r}.")


def check_step_size(name: str, argument: str, value: Any, *, zero: bool) -> None:
    """Raise `ValueError` unless a step size that is a number is positive and finite."""
    if isinstance(value, int | float):
        check_positive(name, zero, "", **{argument: value})


def clip_norms(
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
    key: Key, step: Scalar, scores: Particles, step_size: StepSize
) -> Particles:
    r"""Return $\eta s + \sqrt{2 \eta}\, \xi$ for each particle, to be projected."""
    value = step_size(step) if callable(step_size) else step_size
    # By rounding, a schedule that falls to zero may pass it.
    size = jnp.maximum(jnp.asarray(value, step.dtype), 0)
    noise = jr.normal(key, scores.shape, scores.dtype)
    return size * scores + jnp.sqrt(2 * size) * noise


def rms(vectors: Float[Array, "n *shape"]) -> Scalar:
    """Return the root mean square of the lengths of the vectors."""
    return jnp.sqrt(jnp.sum(vectors**2) / len(vectors))


def identity(point: Point) -> Point:
    """Return a point itself: the projection of particles that live everywhere."""
    return point


def check_projection(
    name: str, project: Callable[[Point], Point], shape: tuple[int, ...]
) -> None:
    """Raise `ValueError` unless a projection takes points of a shape and keeps it."""
    wanted = f"{name}'s `project` must take points of shape {shape} and keep it, but"
    point = jax.ShapeDtypeStruct(shape, jax.dtypes.canonicalize_dtype(float))
    try:
        projected = jax.eval_shape(project, point)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{wanted} failed: {error}") from error
    if getattr(projected, "shape", None) != shape:
        raise ValueError(f"{wanted} it returned {projected!r}.")
