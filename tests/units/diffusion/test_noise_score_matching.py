import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from molecules_by_hand import clouds, energy_of, known

import equistein as es
from equistein.diffusion import denoising_loss, NoiseConditionalScoreMatching
from equistein.energies import PlainEnergy
from equistein.networks import MLP
from equistein.training import Batch


@pytest.fixture(scope="module")
def energy():
    return energy_of(jr.key(1), clouds(jr.key(0)), sigma_min=0.1)


def test_exact_score_has_less_denoising_loss_than_any_other(energy, key):
    points, losses = jnp.zeros((64, 3, 3)), []
    noise = energy.random_levels(key, 64)
    for factor in (0.9, 1.0, 1.1):
        exact = known(energy, factor)
        losses.append(denoising_loss(key, exact, points, noise))
    assert losses[1] < 1e-12
    assert min(losses[0], losses[2]) > 0.002


def test_the_loss_of_no_score_is_the_mean_square_of_the_noise(energy, key):
    flat = known(energy)
    noise = energy.random_levels(key, 20_000)
    wide = eqx.tree_at(lambda e: e.scale, flat, jnp.asarray(1e9))
    loss = denoising_loss(key, wide, jnp.zeros((20_000, 3, 3)), noise)
    # 6 of 9 coordinates: the center of mass has no noise.
    assert abs(loss - 6 / 9) < 5 * (12**0.5 / 9) / 20_000**0.5


@pytest.mark.slow
def test_the_objective_is_this_loss_at_random_levels(energy, key):
    data = clouds(key)
    batch = Batch(data, None, jnp.arange(8))
    objective = NoiseConditionalScoreMatching()
    loss, _, info = objective.loss(key, energy, None, batch)
    level_key, noise_key = jr.split(key)
    levels = energy.random_levels(level_key, 8)
    assert np.isclose(loss, denoising_loss(noise_key, energy, data, levels))
    assert info == {"denoising_loss": loss}


def test_an_energy_without_levels_is_refused(key, unchecked):
    plain, objective = PlainEnergy(MLP(9, key=key)), NoiseConditionalScoreMatching()
    with pytest.raises(ValueError, match="NoiseEnergy"):
        es.fit(key, plain, clouds(key), objective, num_epochs=1, batch_size=4)
