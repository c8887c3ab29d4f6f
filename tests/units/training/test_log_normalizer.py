import jax.numpy as jnp
import jax.random as jr
import numpy as np

from equistein.energies import AbstractEnergy
from equistein.groups import Trivial
from equistein.kernels import RBF
from equistein.training import Box, FitConfig, Fitted, Lengths

SHORT = {"num_particles": 256, "num_steps": 300}


class Bowl(AbstractEnergy):
    def __call__(self, point):
        return 0.5 * jnp.sum(point**2) / 0.5**2

    def group(self, shape):
        return Trivial()

    def kernel(self, shape, bandwidth):
        return RBF(bandwidth)


def test_a_fit_knows_its_likelihood(key):
    data = 0.5 * 2**0.5 * jr.normal(key, (200, 2))
    config = FitConfig(temperature=2.0)
    start = Box(data, Trivial())
    fitted = Fitted(
        Bowl(), data, {}, [], start, RBF(1.0), config, Lengths(config, start.reach)
    )
    found = fitted.log_normalizer(key, **SHORT)
    variance = 2 * 0.5**2  # at twice the temperature
    assert abs(found.value - np.log(2 * np.pi * variance)) < float(found.error)
    exact = -0.5 * np.sum(np.asarray(data) ** 2, axis=1) / variance
    exact -= np.log(2 * np.pi * variance)
    likelihoods = fitted.log_likelihood(data, found)
    assert likelihoods.shape == (200,)
    assert np.max(np.abs(likelihoods - exact)) < float(found.error)
