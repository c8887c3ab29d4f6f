import jax
import jax.numpy as jnp
import numpy as np
import pytest
from call_registry import CALLS
from registries import normal

from equistein.groups import PointCloud
from equistein.metrics import (
    energy_distance,
    frechet_distance,
    geometric_wasserstein,
    total_variation,
    wasserstein_1d,
)

CLOUDS = PointCloud((0, 0, 0), 2)
DISTANCES = {  # adding a distance between samples to the library means adding a line
    energy_distance: (energy_distance, (3, 2)),
    frechet_distance: (frechet_distance, (2,)),
    geometric_wasserstein: (
        lambda x, y: geometric_wasserstein(x, y, CLOUDS).value,
        (3, 2),
    ),
    total_variation: (lambda x, y: total_variation(x, y, (-2.0, 2.0), 10), ()),
    wasserstein_1d: (wasserstein_1d, ()),
}
_COSTLY = (frechet_distance, total_variation)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(f, marks=pytest.mark.slow if f in _COSTLY else [])
        for f in DISTANCES
    ],
    ids=lambda f: f.__name__,
)
def test_distance_is_one_of_samples(name, key):
    distance, shape = DISTANCES[name]
    first, second = normal(key, (2, 8, *shape))
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


@pytest.mark.slow
def test_each_metric_compiles_at_most_four_programs(counted):
    jax.clear_caches()
    metrics = {name: row for name, row in CALLS.items() if "metrics" in name}
    assert len(metrics) > 20
    for name, (metric, given) in metrics.items():
        with counted() as first:
            metric(**given)
        assert len(first) <= 4, (name, first)
