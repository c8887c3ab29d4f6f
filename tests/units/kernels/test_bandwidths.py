import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

from equistein.features import PairHistogram
from equistein.groups import Cyclic
from equistein.kernels import (
    Equivariant,
    IMQ,
    MaximumDiscrepancy,
    measured_bandwidth,
    Median,
    Moments,
    RBF,
    squared_discrepancy,
)
from equistein.metrics import kernel_stein_discrepancy
from equistein.samplers import run, SVGD
from equistein.targets import RotatedGaussians


def normal(x):
    return -jnp.sum(x**2) / 2


def discrepancies(num_sets, key, scale):
    """Return the statistic without own terms on sets of normal points."""
    points = scale * jr.normal(key, (num_sets, 20, 2))
    one = lambda x: squared_discrepancy(IMQ(1.0), x, -x, own_terms=False)
    return np.asarray(jax.jit(jax.vmap(one))(points))


def test_the_u_statistic_has_mean_zero_on_exact_samples(key):
    values = discrepancies(400, key, 1.0)
    assert abs(values.mean()) < 4 * values.std() / 20
    assert values.min() < 0


def test_the_u_statistic_tells_points_that_are_too_wide(key):
    values = discrepancies(400, key, 1.3)
    assert values.mean() > 8 * values.std() / 20


@pytest.mark.slow
def test_the_u_statistic_of_moments_has_one_metric_for_all_particles(key):
    features = PairHistogram((0, 0, 0), num_centers=5)
    x = jr.normal(key, (20, 3, 2))
    measured, fixed = (
        squared_discrepancy(kernel, x, -x, own_terms=False)
        for kernel in (Moments(features), Moments(features).at(x))
    )
    assert np.isclose(measured, fixed, rtol=1e-9)


def test_the_v_statistic_is_the_metric_squared(key):
    x = jr.normal(key, (9, 2))
    squared = squared_discrepancy(RBF(0.7), x, -x)
    metric = kernel_stein_discrepancy(normal, x, RBF(0.7))
    assert np.isclose(squared, metric**2)


def test_the_learned_bandwidth_is_the_one_of_largest_discrepancy():
    rule = MaximumDiscrepancy((0.5, 1.0, 3.0))
    apart = 8 * np.log(2) * jnp.array([[0.0, 1.0], [1.0, 0.0]])  # the median is 2
    assert np.isclose(Median()(apart, lambda h: -h), 2.0)
    assert np.isclose(rule(apart, lambda h: -((h - 5.0) ** 2)), 6.0)
    assert np.isclose(rule(apart, lambda h: -h), 1.0)


@pytest.mark.slow
def test_a_run_takes_the_bandwidth_that_the_discrepancy_chooses(key):
    target = RotatedGaussians(Cyclic(4))
    rule = MaximumDiscrepancy((0.5, 1.0, 2.0), every=3)
    kernel = Equivariant(RBF(rule), Cyclic(4))
    x = 2 * jr.normal(key, (16, 2))
    samples = run(
        key, SVGD(kernel, optax.sgd(0.1)), target.log_density, x, num_steps=5,
        record_every=1,
    )  # fmt: skip
    scores = jax.vmap(jax.grad(target.log_density))(x)
    median = measured_bandwidth(kernel.with_bandwidth(Median()), x, scores)
    bandwidths = median * jnp.array(rule.factors)
    values = [
        float(squared_discrepancy(kernel.with_bandwidth(h), x, scores, own_terms=False))
        for h in bandwidths
    ]
    used = samples.history["bandwidth"]
    assert np.isclose(used[0], bandwidths[np.argmax(values)])
    assert used[0] == used[1] == used[2]
