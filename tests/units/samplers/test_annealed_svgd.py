import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.groups import Cyclic
from equistein.kernels import RBF
from equistein.metrics import mode_weights
from equistein.samplers import annealed_svgd, Geometric, run
from equistein.targets import RotatedGaussians


def test_it_is_hot_at_first_and_at_the_target_for_the_last_fifth():
    sampler = annealed_svgd(RBF(1.0), 100, 0.1)
    assert np.isclose(sampler.annealing(jnp.asarray(0.0)), 0.01)
    assert sampler.annealing(jnp.asarray(79.0)) < 1
    assert sampler.annealing(jnp.asarray(80.0)) == 1
    annealing = Geometric(10, start=0.5)
    sampler = annealed_svgd(RBF(1.0), 100, 0.1, annealing, score_clip=3.0)
    assert sampler.annealing is annealing
    assert sampler.score_clip == 3.0


@pytest.mark.slow
def test_no_mode_is_left_out_though_all_particles_start_in_one(key):
    target = RotatedGaussians(Cyclic(4))
    start = target.mean[None] + 0.1 * jr.normal(key, (20, 2))
    sampler = annealed_svgd(RBF(), 400, 0.1)
    found = run(key, sampler, target.log_density, start, num_steps=400).particles
    weights = mode_weights(found, Cyclic(4).orbit(target.mean))
    assert jnp.all(weights > 0)
