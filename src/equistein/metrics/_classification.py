"""Classifiers: accuracy and calibration; scores that separate outliers."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int

from equistein._check_arguments import check_finite_arguments
from equistein._numbers import check_integers
from equistein._products import matmul
from equistein._types import Particles, Point, Scalar
from equistein.energies import AbstractEnergy, check_labels
from equistein.metrics._checks import are_labels, are_numbers, check_bins, nan_unless

_AT_ONCE = 256  # images take much memory
_RIDGE = 1e-4  # of the variance, where statistics depend on each other


@check_finite_arguments
def accuracy(logits: Float[Array, "n class"], labels: Int[Array, " n"]) -> Scalar:
    """Return the fraction of points whose likeliest class is the right one.

    Under `jax.jit` it is NaN if a logit is not finite, or a label is no class.
    """
    check_labels("accuracy", labels, logits.shape[1])
    return jnp.mean(_confidence(logits, labels)[1])


@check_finite_arguments
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
    check_bins("expected_calibration_error", num_bins)
    check_labels("expected_calibration_error", labels, logits.shape[1])
    return _gaps(*_confidence(logits, labels), num_bins)


@eqx.filter_jit
def _confidence(logits, labels) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """Return confidences, and 1 where the likeliest class is right; NaN if invalid."""
    confidence = jnp.max(jax.nn.softmax(logits, axis=1), axis=1)
    right = jnp.argmax(logits, axis=1).astype(labels.dtype) == labels
    good = are_numbers(logits) & are_labels(labels, logits.shape[1])
    return confidence, nan_unless(good, right.astype(confidence.dtype))


@eqx.filter_jit
def _gaps(confidence, right, num_bins) -> Scalar:
    # The number of a bin cancels: n_b |acc - conf| is a difference of sums.
    bins = jnp.clip(jnp.ceil(confidence * num_bins).astype(int) - 1, 0, num_bins - 1)
    sums = jnp.zeros(num_bins, right.dtype).at[bins].add(right - confidence)
    return jnp.sum(jnp.abs(sums)) / len(right)


@check_finite_arguments
@eqx.filter_jit
def outlier_scores(
    energy: AbstractEnergy, points: Particles
) -> dict[str, Float[Array, " n"]]:
    r"""Return scores that are high for points like the data, and low for others.

    `log_density` is $-E(x)$, `confidence` is $\max_y p(y|x)$ of a joint energy, and
    `gradient_norm` is $-|\nabla E(x)|$: the density of typical points is flat.

    References:
        Grathwohl et al. (2020), Your classifier is secretly an energy based model,
        section 5.3.
    """

    def of_one(point):
        def value(x):
            values = energy.evaluate(x)
            return values.energy, values.logits

        (value_here, logits), gradient = jax.value_and_grad(value, has_aux=True)(point)
        scores = {
            "log_density": -value_here,
            "gradient_norm": -jnp.sqrt(jnp.sum(gradient**2)),
        }
        if logits is not None:
            scores["confidence"] = jnp.max(jax.nn.softmax(logits))
        return scores

    return jax.lax.map(of_one, points, batch_size=_AT_ONCE)


@check_finite_arguments
def typicality(
    statistics: Callable[[Point], Float[Array, " statistic"]],
    points: Particles,
    data: Float[Array, "m *shape"],
    labels: Int[Array, " m"],
    num_classes: int,
) -> Float[Array, " n"]:
    r"""Return how typical statistics of points are of those of the data.

    $$-\min_y (t(x) - \mu_y)^\top \Sigma^{-1} (t(x) - \mu_y)$$

    with the mean $\mu_y$ of the statistics t over the data of class y, and the
    covariance $\Sigma$ within classes. Unlike the density, it is low for outliers that
    are simpler than the data.

    Statistics of a point are features, logits, or the norm of the score. Labels are -1
    where unknown, and a class without data is left out.

    References:
        Lee et al. (2018), A simple unified framework for detecting out-of-distribution
        samples; Morningstar et al. (2021), Density of states estimation.
    """
    check_integers("`typicality`", num_classes=num_classes)
    check_labels("typicality", labels, num_classes, unknown=True)
    if not isinstance(labels, Tracer) and np.all(np.asarray(labels) < 0):
        raise ValueError(
            "`typicality` needs `labels` of which some are known, but all are -1. Give "
            "0 for all, which is one class."
        )
    return _typicality(statistics, points, data, labels, num_classes)


@eqx.filter_jit
def _typicality(statistics, points, data, labels, num_classes) -> Float[Array, " n"]:
    of_all = lambda x: jax.lax.map(statistics, x, batch_size=_AT_ONCE)
    known, judged = of_all(data), of_all(points)
    member = jax.nn.one_hot(labels, num_classes, dtype=known.dtype)
    counts = jnp.sum(member, axis=0)
    means = matmul(member.T, known) / jnp.maximum(counts, 1)[:, None]
    apart = (known - matmul(member, means)) * jnp.sum(member, axis=1)[:, None]
    covariance = matmul(apart.T, apart) / jnp.sum(member)
    ridge = _RIDGE * jnp.diag(jnp.diag(covariance))
    gaps = judged[:, None] - means[None]
    solved = jnp.linalg.solve(covariance + ridge, gaps.reshape(-1, gaps.shape[2]).T)
    distances = jnp.sum(gaps * solved.T.reshape(gaps.shape), axis=2)
    return -jnp.min(jnp.where(counts > 0, distances, jnp.inf), axis=1)
