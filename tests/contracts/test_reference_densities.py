import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.stats
from registries import classes_of

from equistein.groups import Orthogonal, PointCloud
from equistein.kernels import Preconditioner
from equistein.samplers import AbstractReference, FittedNormal, Normal


def learned(points):
    metric = Preconditioner.by_width(points)
    return metric.updated(metric.sums(points), len(points))


REFERENCES = {  # adding a reference means adding a line
    "normal": (lambda: Normal(jnp.zeros(3), 0.7, Orthogonal(3)), 3),
    "normal off center": (lambda: Normal(jnp.array([1.0, -2.0]), 1.5), 2),
    "normal with a covariance": (
        lambda: FittedNormal(learned(jr.normal(jr.key(0), (99, 2)))), 2
    ),
    "normal on clouds": (
        lambda: Normal(jnp.zeros((3, 2)), 2.0, PointCloud("COO", 2)), 4
    ),
}  # fmt: skip
every_reference = pytest.mark.parametrize(
    ("make", "dim"), REFERENCES.values(), ids=REFERENCES.keys()
)


def test_every_reference_is_in_the_registry():
    kinds = {type(make()) for make, _ in REFERENCES.values()}
    assert kinds == classes_of(AbstractReference)


@every_reference
@pytest.mark.parametrize(("shift", "passes"), [(0.0, True), (0.1, False)])
def test_reference_is_normalized_as_it_samples(make, dim, shift, passes, key):
    base = make()
    # The mean of q / p over samples of p is the integral of q, a narrower normal.
    points = base.sample(key, 4_000)
    assert np.allclose(jax.vmap(base.project)(points), points)
    gaps = (points - jnp.mean(points, axis=0)[None]).reshape(len(points), -1)
    squares = jnp.sum(gaps**2, axis=1)
    variance = 0.8**2 * jnp.mean(squares) / dim
    log_q = -squares / 2 / variance - dim * jnp.log(2 * jnp.pi * variance) / 2
    ratios = np.exp(log_q - jax.vmap(base.log_density)(points) - shift)
    assert (abs(ratios.mean() - 1) < 5 * ratios.std() / 4_000**0.5) == passes


def test_a_learned_reference_is_uniform_along_periods(key):
    metric = learned(jr.normal(key, (99, 3)) * jnp.array([[1.0, 5.0, 2.0]]))
    base = FittedNormal(metric, jnp.array([jnp.inf, 7.0, jnp.inf])).refit(metric)
    points, free = base.sample(key, 4_000), np.array([0, 2])
    covariance = np.asarray(metric.covariance)[np.ix_(free, free)]
    center = np.asarray(metric.center)[free]
    normal = scipy.stats.multivariate_normal(center, covariance)
    exact = normal.logpdf(np.asarray(points)[:, free]) - np.log(7)
    assert np.allclose(jax.vmap(base.log_density)(points), exact)
    assert scipy.stats.kstest(points[:, 1] / 7, "uniform").statistic * 4_000**0.5 < 2
    assert np.allclose(np.cov(points[:, free].T) / covariance, 1, atol=0.5)
