import jax
import numpy as np
import pytest
import scipy.stats

from equistein.metrics import proportions
from equistein.targets import HardMixture


def test_density_integrates_to_its_normalizer_in_the_plane():
    target = HardMixture(2, radius=6.0)
    ticks = np.linspace(-14.0, 14.0, 281)
    grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    mass = np.sum(np.exp(jax.jit(jax.vmap(target.log_density))(grid))) * 0.1**2
    assert np.isclose(mass, np.exp(target.log_normalizer), rtol=1e-6)
    assert abs(float(target.log_normalizer)) > 1  # to be found, not assumed


@pytest.mark.parametrize("dim", [2, 20, 50])
def test_normalized_density_is_the_mixture_of_normals(dim, key):
    target = HardMixture(dim)
    points = jax.jit(lambda key: target.sample(key, 50))(key)
    exact = sum(
        float(weight)
        * scipy.stats.multivariate_normal(np.asarray(mean), float(width) ** 2).pdf(
            points
        )
        for weight, width, mean in zip(
            target.weights, target.widths, target.means, strict=True
        )
    )
    values = jax.jit(jax.vmap(target.log_density))(points) - target.log_normalizer
    assert np.allclose(values, np.log(exact))


@pytest.mark.parametrize(("swap", "passes"), [(False, True), (True, False)])
def test_samples_have_the_weights_and_widths(swap, passes, key):
    target = HardMixture(20)
    points = target.sample(key, 20_000)
    found = np.asarray(proportions(target.modes(points), 4))
    exact = np.asarray(target.weights)[:: -1 if swap else 1]
    errors = np.sqrt(exact * (1 - exact) / 20_000)
    assert np.all(np.abs(found - exact) < 4 * errors) == passes
    for mode, width in enumerate(np.asarray(target.widths)):
        its = np.asarray(points)[np.asarray(target.modes(points)) == mode]
        # The last axes are normal with that width.
        num = its[:, 2:].size
        assert abs(its[:, 2:].std() / width - 1) < 4 / (2 * num) ** 0.5
    assert np.isclose(target.widths[-1] / target.widths[0], 1.4)
