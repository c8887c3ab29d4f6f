"""Accuracy and calibration of classifiers, attacks on them, and AUROC of scores."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from equistein._gate import finite_gate
from equistein._types import Particles, Point, Scalar
from equistein.metrics._checks import (
    are_labels,
    are_numbers,
    check_bins,
    check_labels,
    nan_unless,
)


@finite_gate
def accuracy(logits: Float[Array, "n class"], labels: Int[Array, " n"]) -> Scalar:
    """Return the fraction of points whose likeliest class is the right one.

    Raises:
        ValueError: If a logit is not finite, or a label is no class; under `jax.jit`
            the result is NaN.
    """
    check_labels("accuracy", labels, logits.shape[1])
    right = jnp.argmax(logits, axis=1).astype(labels.dtype) == labels
    return nan_unless(_are_valid(logits, labels), jnp.mean(right))


class Reliability(NamedTuple):
    r"""How often predictions are right, by their confidence.

    Attributes:
        confidence: The mean of $\max_y p(y|x)$ in each bin; 0 in an empty one.
        accuracy: The fraction of right predictions in it.
        proportion: The proportion of the points in it.
    """

    confidence: Float[Array, " bin"]
    accuracy: Float[Array, " bin"]
    proportion: Float[Array, " bin"]


@finite_gate
def reliability(
    logits: Float[Array, "n class"], labels: Int[Array, " n"], num_bins: int = 15
) -> Reliability:
    """Return the reliability diagram, in bins of equal width of the confidence.

    References:
        Guo et al. (2017), On calibration of modern neural networks.
    """
    check_bins("reliability", num_bins)
    check_labels("reliability", labels, logits.shape[1])
    confidence = jnp.max(jax.nn.softmax(logits, axis=1), axis=1)
    guessed = jnp.argmax(logits, axis=1).astype(labels.dtype)
    right = (guessed == labels).astype(confidence.dtype)
    bins = jnp.clip(jnp.ceil(confidence * num_bins).astype(int) - 1, 0, num_bins - 1)
    rows = jnp.stack([confidence, right, jnp.ones_like(right)])
    sums = jnp.zeros((3, num_bins), rows.dtype).at[:, bins].add(rows)
    some = jnp.maximum(sums[2], 1)
    means = jnp.stack([sums[0] / some, sums[1] / some, sums[2] / len(labels)])
    return Reliability(*nan_unless(_are_valid(logits, labels), means))


@finite_gate
def expected_calibration_error(
    logits: Float[Array, "n class"], labels: Int[Array, " n"], num_bins: int = 15
) -> Scalar:
    r"""Return the mean gap between confidence and accuracy.

    $$\sum_b \frac{n_b}{n} |\mathrm{acc}_b - \mathrm{conf}_b|$$

    over bins of equal width of the confidence $\max_y p(y|x)$. Of n points of a perfect
    model it is below $\sqrt{b / n}$ with b bins, but not zero: compare equal numbers.

    References:
        Guo et al. (2017), On calibration of modern neural networks.
    """
    bins = reliability(logits, labels, num_bins)
    return jnp.sum(bins.proportion * jnp.abs(bins.accuracy - bins.confidence))


@finite_gate
def auroc(inside: Float[Array, " n"], outside: Float[Array, " m"]) -> Scalar:
    """Return the chance that a point of the data scores higher than another point.

    The area under the receiver operating characteristic. A tie counts half; a useless
    score has 0.5.
    """
    ordered = jnp.sort(outside)
    below = jnp.searchsorted(ordered, inside, side="left")
    not_above = jnp.searchsorted(ordered, inside, side="right")
    wins = 0.5 * (below + not_above).astype(inside.dtype)
    return nan_unless(are_numbers(inside, outside), jnp.mean(wins) / len(outside))


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
    r"""Mislead a classifier: projected gradient ascent on the loss of the labels.

    $$x \leftarrow \Pi\bigl(x + \tfrac{5 r}{2 n}\,
      \mathrm{sign} \nabla_x (-\log p(y | x)) \bigr)$$

    n steps, where $\Pi$ keeps each coordinate within the radius $r$ of where it was,
    and within the limits, such as those of pixels.

    Raises:
        ValueError: If a label is no class.

    References:
        Madry et al. (2018), Towards deep learning models resistant to adversarial
        attacks.
    """
    num = eqx.filter_eval_shape(logits, points[0]).shape[0]
    check_labels("projected_gradient_attack", labels, num)
    return _attacked(logits, points, labels, radius, limits, num_steps)


def _are_valid(
    logits: Float[Array, "n class"], labels: Int[Array, " n"]
) -> Bool[Array, ""]:
    return are_numbers(logits) & are_labels(labels, logits.shape[1])


@eqx.filter_jit
def _attacked(logits, points, labels, radius, limits, num_steps) -> Particles:
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
