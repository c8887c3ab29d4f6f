"""Small changes of points that mislead a classifier."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from equistein._gate import finite_gate
from equistein._types import Particles, Point
from equistein.metrics._known_labels import check_labels


@finite_gate
def projected_gradient_attack(
    logits: Callable[[Point], Float[Array, " class"]],
    points: Particles,
    labels: Int[Array, " particle"],
    radius: float | Float[Array, ""],
    *,
    limits: tuple[float, float] = (0.0, 1.0),
    num_steps: int = 10,
) -> Particles:
    r"""Return the points after projected gradient ascent on the loss of their labels.

    $$x \leftarrow \Pi\bigl(x + \tfrac{5 r}{2 n}\,
      \mathrm{sign} \nabla_x (-\log p(y | x)) \bigr)$$

    n steps, where $\Pi$ keeps each coordinate within the radius $r$ of where it was,
    and within the limits.

    Args:
        logits: The logits of a point.
        points: The points.
        labels: Their classes.
        radius: The largest change of a coordinate.
        limits: The range of coordinates, such as that of pixels.
        num_steps: The number n of steps.

    Raises:
        ValueError: If a label is no class.

    References:
        Madry et al. (2018), Towards deep learning models resistant to adversarial
        attacks.
    """
    num = eqx.filter_eval_shape(logits, points[0]).shape[0]
    check_labels("projected_gradient_attack", labels, num)
    return _attacked(logits, points, labels, radius, limits, num_steps)


@eqx.filter_jit
def _attacked(
    logits: Callable[[Point], Float[Array, " class"]],
    points: Particles,
    labels: Int[Array, " particle"],
    radius: float | Float[Array, ""],
    limits: tuple[float, float],
    num_steps: int,
) -> Particles:
    low, high = limits

    def loss(point, label):
        return -jax.nn.log_softmax(logits(point))[label]

    def one(pair):
        point, label = pair
        size = jnp.asarray(radius, point.dtype)
        nearest = jnp.maximum(point - size, low)
        farthest = jnp.minimum(point + size, high)

        def step(_, moved):
            slope = jnp.sign(jax.grad(loss)(moved, label))
            return jnp.clip(moved + 2.5 / num_steps * size * slope, nearest, farthest)

        return jax.lax.fori_loop(0, num_steps, step, point)

    return jax.lax.map(one, (points, labels), batch_size=100)
