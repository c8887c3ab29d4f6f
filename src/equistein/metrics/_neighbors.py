"""Nearest neighbors of samples: precision and recall, copies, weights of modes."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from equistein._gate import finite_gate
from equistein._limits import check_memory
from equistein._numbers import check_integers
from equistein._products import matmul
from equistein._types import Scalar
from equistein.metrics._checks import (
    are_labels,
    are_numbers,
    check_labels,
    nan_unless,
)

_AT_ONCE = 64  # rows of distances held together


class PrecisionAndRecall(NamedTuple):
    """How good samples are, and how much of the data they cover.

    Attributes:
        precision: The fraction of samples among the data.
        recall: The fraction of the data among the samples.
    """

    precision: Scalar
    recall: Scalar


@finite_gate
@eqx.filter_jit
def precision_and_recall(
    samples: Float[Array, "n feature"],
    data: Float[Array, "m feature"],
    num_neighbors: int = 3,
) -> PrecisionAndRecall:
    r"""Return the fractions of samples among the data, and of data among the samples.

    A point is among others if it is no further from one of them than that one's k-th
    nearest neighbor. Collapsed samples have a precision near 1 and a recall near 0.
    Compare with as many held-out data. Memory is O(n + m).

    Raises:
        ValueError: If there are no more than k of either.

    References:
        Kynkäänniemi et al. (2019), Improved precision and recall metric for assessing
        generative models, equations 1 and 2.
    """
    if not 1 <= num_neighbors < min(len(samples), len(data)):
        raise ValueError(
            "`precision_and_recall` needs more points than `num_neighbors` >= 1, but "
            f"got {len(samples)} samples, {len(data)} data and {num_neighbors}."
        )
    good = are_numbers(samples, data)
    return PrecisionAndRecall(
        nan_unless(good, _fraction_among(samples, data, num_neighbors)),
        nan_unless(good, _fraction_among(data, samples, num_neighbors)),
    )


@finite_gate
@eqx.filter_jit
def nearest_distances(
    points: Float[Array, "n *shape"], others: Float[Array, "m *shape"]
) -> Float[Array, " n"]:
    """Return the distance of each point to the nearest of others.

    Samples nearer to the training data than held-out data are copies of it. Memory is
    O(n + m).
    """
    flat = others.reshape(len(others), -1)
    center = jnp.mean(flat, axis=0)  # for single precision
    flat = flat - center[None]
    norms = jnp.sum(flat**2, axis=1)

    def nearest(point):
        point = point.ravel() - center
        squares = norms - 2 * matmul(flat, point) + jnp.sum(point**2)
        return jnp.sqrt(jnp.maximum(jnp.min(squares), 0))

    return jax.lax.map(nearest, points, batch_size=_AT_ONCE)


@finite_gate
def mode_weights(
    samples: Float[Array, "n *shape"], modes: Float[Array, "mode *shape"]
) -> Float[Array, " mode"]:
    """Return the proportion of samples, or their features, nearest to each mode."""
    needed = 2 * samples.size * samples.dtype.itemsize * len(modes)
    check_memory("`mode_weights`", needed, "give fewer samples, or features of them")
    gaps = (samples[:, None] - modes[None]) ** 2
    gaps = gaps.reshape(len(samples), len(modes), -1)
    nearest = jnp.argmin(jnp.sum(gaps, axis=-1), axis=1)
    weights = proportions(nearest, len(modes))
    return nan_unless(are_numbers(samples, modes), weights)


@finite_gate
def proportions(labels: Int[Array, " n"], num: int) -> Float[Array, " num"]:
    """Return the proportion of each of the labels 0 to `num - 1`.

    Raises:
        ValueError: If a label is none of these; under `jax.jit` the result is NaN.
    """
    check_integers("`proportions`", num=num)
    check_memory("`proportions`", 9 * num * (len(labels) + 1), "take a smaller `num`")
    check_labels("proportions", labels, num)
    means = jnp.mean(labels[:, None] == jnp.arange(num)[None, :], axis=0)
    return nan_unless(are_labels(labels, num), means)


def _fraction_among(
    points: Float[Array, "n feature"], others: Float[Array, "m feature"], num: int
) -> Scalar:
    def radius(other):
        # The nearest is the point itself, at distance 0.
        return -jax.lax.top_k(-_squares(other, others), num + 1)[0][num]

    radii = jax.lax.map(radius, others, batch_size=_AT_ONCE)
    among = lambda point: jnp.any(_squares(point, others) <= radii)
    inside = jax.lax.map(among, points, batch_size=_AT_ONCE)
    return jnp.mean(inside.astype(points.dtype))


def _squares(
    point: Float[Array, " dim"], others: Float[Array, "m dim"]
) -> Float[Array, " m"]:
    return jnp.sum((others - point[None]) ** 2, axis=1)
