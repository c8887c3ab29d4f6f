"""Noise-contrastive estimation: weights of modes, and energies far from the data."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import equistein as es
from equistein.energies import LinearEnergy
from equistein.features import Quadratic, RandomFeatures
from equistein.groups import Trivial
from equistein.metrics import noise_contrastive_estimation

SHARE = 0.8  # of the mode on the right
WIDTH = 0.4


def log_density(point):
    right, left = (jnp.sum((point - jnp.array([x, 0.0])) ** 2) for x in (2.0, -2.0))
    logs = jnp.stack([-right, -left]) / (2 * WIDTH**2)
    return jax.nn.logsumexp(logs, b=jnp.array([SHARE, 1 - SHARE])) - jnp.log(
        2 * jnp.pi * WIDTH**2
    )


def samples(key, num):
    coin_key, noise_key = jr.split(key)
    signs = jnp.where(jr.bernoulli(coin_key, SHARE, (num,)), 2.0, -2.0)
    centers = jnp.stack([signs, jnp.zeros(num)], axis=1)
    return centers + WIDTH * jr.normal(noise_key, (num, 2))


def unfitted(key, points):
    normal = es.fit_linear(
        key, LinearEnergy(Quadratic(Trivial())), points, progress=False
    )
    waves = RandomFeatures(Trivial(), 80, points)
    return LinearEnergy(waves, normal.energy)


def judged(energy, points):
    """Return the share on the right, that far away, and the loss of likelihood."""
    axis = jnp.linspace(-16, 16, 201)
    grid = jnp.stack(jnp.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    values = np.asarray(jax.jit(jax.vmap(energy.log_density))(grid), float)
    weights = np.exp(values - values.max())
    log_z = np.log(weights.sum() * float(axis[1] - axis[0]) ** 2) + values.max()
    weights /= weights.sum()
    gaps = jax.vmap(lambda x: log_density(x) - energy.log_density(x))(points)
    far = weights[np.asarray(jnp.linalg.norm(grid, axis=1)) > 6].sum()
    return weights[np.asarray(grid[:, 0]) > 0].sum(), far, float(gaps.mean()) + log_z


@pytest.mark.parametrize("by_scores", [False, True])  # the twin: slopes alone
def test_weights_of_modes_are_learned_and_nothing_is_far_away(by_scores, key):
    points, held_out = samples(key, 600), samples(jr.key(1), 1_000)
    energy = unfitted(key, points)
    if by_scores:
        found = es.fit_linear(key, energy, points, progress=False).energy
    else:
        found = noise_contrastive_estimation(key, energy, points)
    share, far, loss = judged(found, held_out)
    error = 4 * (SHARE * (1 - SHARE) / len(points)) ** 0.5
    is_right = abs(share - SHARE) < error and far < 0.02 and loss < 0.1
    assert is_right != by_scores, (share, far, loss)


@pytest.mark.slow
def test_the_energy_is_about_the_same_in_other_units(key):
    points = samples(key, 400)
    moved = points * jnp.array([[30.0, 0.1]]) + jnp.array([[100.0, 5.0]])
    first, second = (
        noise_contrastive_estimation(key, unfitted(key, x), x, ridge=0.1)
        for x in (points, moved)
    )
    before, after = (
        jax.vmap(e.log_density)(x) for e, x in ((first, points), (second, moved))
    )
    gaps = before - after
    # Up to the noise, which is drawn along other axes.
    assert jnp.std(gaps) < 0.35 * jnp.std(before)


@pytest.mark.slow
def test_classes_have_their_densities_and_as_many_points_as_they_had(key):
    points = samples(key, 1_500)
    labels = np.asarray(points[:, 0] > 0, int)
    energy = noise_contrastive_estimation(
        key, unfitted(key, points), points, labels=labels
    )
    held_out = samples(jr.key(1), 2_000)
    share, far, loss = judged(energy, held_out)
    assert abs(share - labels.mean()) < 0.02
    assert far < 0.02
    assert loss < 0.1
    own, _, loss = judged(energy.condition(1), held_out[held_out[:, 0] > 0])
    assert own > 0.98
    assert loss < np.log(SHARE) + 0.1
    for wrong in (labels - 1, labels + 1, labels[:-1]):
        with pytest.raises(ValueError, match="`labels`"):
            noise_contrastive_estimation(key, energy, points, labels=wrong)


def test_a_base_is_asked_for(key):
    points = samples(key, 20)
    with pytest.raises(ValueError, match="`base`"):
        noise_contrastive_estimation(key, LinearEnergy(Quadratic(Trivial())), points)
