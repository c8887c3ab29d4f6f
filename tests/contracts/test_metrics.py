import inspect

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein import metrics
from equistein.groups import Orthogonal, PointCloud, Trivial
from equistein.metrics import (
    AbstractReference,
    energy_distance,
    geometric_wasserstein,
    Normal,
    total_variation,
    wasserstein_1d,
)

CLOUDS = PointCloud((0, 0, 0), 2)
DISTANCES = {  # adding a distance between samples to the library means adding a line
    energy_distance: (energy_distance, (3, 2)),
    geometric_wasserstein: (
        lambda x, y: geometric_wasserstein(x, y, CLOUDS).value,
        (3, 2),
    ),
    total_variation: (lambda x, y: total_variation(x, y, (-2.0, 2.0), 10), ()),
    wasserstein_1d: (wasserstein_1d, ()),
}
NO_DISTANCES = {
    metrics.accuracy,
    metrics.annealed_importance_sampling,
    metrics.auroc,
    metrics.expected_calibration_error,
    metrics.kernel_stein_discrepancy,
    metrics.mean_log_likelihood,
    metrics.mode_weights,
    metrics.outlier_scores,
    metrics.pair_distances,
    metrics.projected_gradient_attack,
    metrics.proportions,
    metrics.reliability,
    metrics.typicality,
    metrics.virial,
}
REFERENCES = {  # adding a base of annealed importance sampling means adding a line
    "normal": (Normal(jnp.zeros(3), 0.7, Orthogonal(3)), 3),
    "normal off center": (Normal(jnp.array([1.0, -2.0]), 1.5, Trivial()), 2),
    "normal on clouds": (Normal(jnp.zeros((3, 2)), 2.0, PointCloud("COO", 2)), 4),
}
every_reference = pytest.mark.parametrize(
    ("base", "dim"), REFERENCES.values(), ids=REFERENCES.keys()
)


def test_every_public_function_is_known_to_be_a_distance_or_not():
    public = {f for f in vars(metrics).values() if callable(f)}
    public -= {f for f in public if inspect.isclass(f)}
    assert public == set(DISTANCES) | NO_DISTANCES


def test_every_reference_is_in_the_registry():
    kinds = {
        kind
        for kind in vars(metrics).values()
        if inspect.isclass(kind)
        and issubclass(kind, AbstractReference)
        and kind is not AbstractReference
    }
    assert kinds == {type(base) for base, _ in REFERENCES.values()}


@pytest.mark.parametrize("name", DISTANCES, ids=lambda f: f.__name__)
def test_distance_is_one_of_samples(name, key):
    distance, shape = DISTANCES[name]
    first, second = jr.normal(key, (2, 8, *shape))
    second = 0.5 * second + jnp.arange(float(np.prod(shape))).reshape(shape)[None]
    there = float(distance(first, second))
    assert there > 0.05
    assert np.isclose(distance(second, first), there)
    # The order of the samples does not matter, and equal sets are at distance zero.
    assert np.isclose(distance(first[::-1], jnp.roll(second, 3, axis=0)), there)
    assert abs(float(distance(first, jnp.roll(first, 2, axis=0)))) < 1e-6
    single = distance(first.astype(jnp.float32), second.astype(jnp.float32))
    assert np.isclose(single, there, rtol=1e-4)
    assert getattr(single, "dtype", jnp.float32) == jnp.float32


@every_reference
@pytest.mark.parametrize(("shift", "passes"), [(0.0, True), (0.1, False)])
def test_reference_is_normalized_as_it_samples(base, dim, shift, passes, key):
    # The mean of q / p over samples of p is the integral of q, a narrower normal.
    points = base.sample(key, 4_000)
    assert np.allclose(jax.vmap(base.project)(points), points)
    gaps = (points - jnp.mean(points, axis=0)[None]).reshape(len(points), -1)
    squares = jnp.sum(gaps**2, axis=1)
    variance = 0.8**2 * jnp.mean(squares) / dim
    log_q = -squares / 2 / variance - dim * jnp.log(2 * jnp.pi * variance) / 2
    ratios = np.exp(log_q - jax.vmap(base.log_density)(points) - shift)
    assert (abs(ratios.mean() - 1) < 5 * ratios.std() / 4_000**0.5) == passes
