"""Accuracy and calibration of classifiers, and AUROC of scores."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from equistein._gate import finite_gate
from equistein._limits import check_made
from equistein._numbers import check_integers
from equistein._types import Scalar
from equistein.metrics._known_labels import (
    are_labels,
    are_numbers,
    check_labels,
    nan_unless,
)

_BYTES = 40  # of a bin: its edges, and what is counted


@finite_gate
def accuracy(logits: Float[Array, "n class"], labels: Int[Array, " n"]) -> Scalar:
    """Return the fraction of points whose likeliest class is the right one.

    Args:
        logits: The logits of each point.
        labels: Its class.

    Raises:
        ValueError: If a logit is not finite, or a label is no class. NaN is returned
            where that is not known yet, under `jax.jit`.
    """
    check_labels("accuracy", labels, logits.shape[1])
    right = jnp.argmax(logits, axis=1).astype(labels.dtype) == labels
    return nan_unless(_are_known(logits, labels), jnp.mean(right))


class Reliability(NamedTuple):
    r"""How often guesses are right, by how sure the model is of them.

    Attributes:
        confidence: The mean of $\max_y p(y|x)$ in each bin; 0 in an empty one.
        accuracy: The fraction of right guesses in it.
        proportion: The proportion of the points in it.
    """

    confidence: Float[Array, " bin"]
    accuracy: Float[Array, " bin"]
    proportion: Float[Array, " bin"]


@finite_gate
def reliability(
    logits: Float[Array, "n class"], labels: Int[Array, " n"], num_bins: int = 15
) -> Reliability:
    """Return what a reliability diagram shows, in bins of equal width of confidence.

    Args:
        logits: The logits of each point.
        labels: Its class.
        num_bins: The number of bins.

    Raises:
        ValueError: As `accuracy` does.

    References:
        Guo et al. (2017), On calibration of modern neural networks.
    """
    check_integers("`reliability`", num_bins=num_bins)
    needed = _BYTES * num_bins
    check_made("`reliability` in so many bins", needed, "take a smaller `num_bins`")
    check_labels("reliability", labels, logits.shape[1])
    confidence = jnp.max(jax.nn.softmax(logits, axis=1), axis=1)
    guessed = jnp.argmax(logits, axis=1).astype(labels.dtype)
    right = (guessed == labels).astype(confidence.dtype)
    bins = jnp.clip(jnp.ceil(confidence * num_bins).astype(int) - 1, 0, num_bins - 1)
    rows = jnp.stack([confidence, right, jnp.ones_like(right)])
    sums = jnp.zeros((3, num_bins), rows.dtype).at[:, bins].add(rows)
    some = jnp.maximum(sums[2], 1)
    found = jnp.stack([sums[0] / some, sums[1] / some, sums[2] / len(labels)])
    return Reliability(*nan_unless(_are_known(logits, labels), found))


@finite_gate
def expected_calibration_error(
    logits: Float[Array, "n class"], labels: Int[Array, " n"], num_bins: int = 15
) -> Scalar:
    r"""Return the mean gap between confidence and accuracy.

    $$\sum_b \frac{n_b}{n} |\mathrm{acc}_b - \mathrm{conf}_b|$$

    over bins of equal width of the confidence $\max_y p(y|x)$. Of n points of a perfect
    model it is below $\sqrt{b / n}$ with b bins, but not zero: compare equal numbers.

    Args:
        logits: The logits of each point.
        labels: Its class.
        num_bins: The number of bins.

    Raises:
        ValueError: As `accuracy` does.

    References:
        Guo et al. (2017), On calibration of modern neural networks.
    """
    check_labels("expected_calibration_error", labels, logits.shape[1])
    found = reliability(logits, labels, num_bins)
    return jnp.sum(found.proportion * jnp.abs(found.accuracy - found.confidence))


@finite_gate
def auroc(inside: Float[Array, " n"], outside: Float[Array, " m"]) -> Scalar:
    """Return the chance that a point of the data scores higher than another point.

    The area under the receiver operating characteristic; a tie counts half, and 0.5 is
    what a score that tells nothing has.

    Args:
        inside: The scores of the data's points, higher for what belongs.
        outside: The scores of others.
    """
    ordered = jnp.sort(outside)
    below = jnp.searchsorted(ordered, inside, side="left")
    not_above = jnp.searchsorted(ordered, inside, side="right")
    wins = 0.5 * (below + not_above).astype(inside.dtype)
    return nan_unless(are_numbers(inside, outside), jnp.mean(wins) / len(outside))


def _are_known(
    logits: Float[Array, "n class"], labels: Int[Array, " n"]
) -> Bool[Array, ""]:
    """Return whether logits are numbers, and labels some of their classes."""
    return are_numbers(logits) & are_labels(labels, logits.shape[1])
