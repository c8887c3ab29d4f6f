import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

from equistein.groups import Cyclic
from equistein.kernels import RBF
from equistein.metrics import mode_weights
from equistein.samplers import annealed_svgd, Geometric, run, thermal
from equistein.targets import RotatedGaussians


def values(schedule, *steps):
    return np.array([float(schedule(jnp.asarray(step))) for step in steps])


@pytest.mark.parametrize("kind", [float, int])
def test_schedules_by_hand(kind):
    steps = [kind(step) for step in (0, 2, 4, 9)]
    assert np.allclose(values(Geometric(4, start=0.01), *steps), [0.01, 0.1, 1, 1])
    assert values(Geometric(1), kind(1)) == 1


def test_thermal_schedule_by_hand():
    annealing = Geometric(4, start=0.01)
    rate = thermal(0.3, annealing, 10)
    # Hot: 0.3 / sqrt(beta); then 0.3, and over the last two steps down to zero.
    assert np.allclose(values(rate, 0, 2, 4, 8, 9, 10), [3, 0.3 * 10**0.5, 0.3, 0.3,
                                                         0.15, 0])  # fmt: skip
    rate = thermal(0.3, annealing, 10, power=1.0, last=0.1)
    assert np.allclose(values(rate, 0, 2, 9, 10, 50), [30, 3, 0.15, 0.03, 0.03])


def test_thermal_schedule_serves_optax():
    optimizer = optax.sgd(thermal(0.5, Geometric(4), 100))
    x = jnp.ones((3, 2))
    update, _ = jax.jit(optimizer.update)(x, optimizer.init(x), x)
    assert np.allclose(update, -0.5 * 1e-3**-0.5)


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
