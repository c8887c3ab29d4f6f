import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from equistein.diffusion import (
    BlurredNormals,
    DiffusionSteps,
    MixtureNoiseEnergy,
    ReverseDiffusion,
    StepSizes,
)
from equistein.groups import ImageRotations
from equistein.networks import SteerableUNet
from equistein.training import Clamp

SIDE, GROUP = 3, ImageRotations()
LABELS = jnp.arange(60) % 3 // 2  # two of three images are of class 0


def images(key):
    shift = jnp.stack([jnp.eye(SIDE), 2 * jnp.ones((SIDE, SIDE))])[LABELS]
    mixing = jr.normal(jr.fold_in(key, 1), (SIDE**2, SIDE**2)) / 3
    points = jr.normal(key, (60, SIDE**2)) @ mixing
    return shift + points.reshape(-1, SIDE, SIDE)


def law(key, **options):
    return BlurredNormals(images(key), GROUP, LABELS, 2, **options)


def energies(key, num_classes=2, sigma_max=4.0):
    network = SteerableUNet((SIDE, SIDE), (1,), num_blocks=1, num_classes=num_classes,
                            key=key)  # fmt: skip
    normals = law(key) if num_classes else BlurredNormals(images(key), GROUP)
    return MixtureNoiseEnergy(network.silent(), normals, 0.05, sigma_max)


def generator_of(num_steps):
    zero = jnp.zeros(())
    steps = DiffusionSteps(StepSizes(zero, zero, jnp.array(1e3)), num_steps)
    return ReverseDiffusion(steps, (SIDE, SIDE), 100)


@pytest.mark.parametrize("noise", [0.0, 0.7])
def test_the_density_is_scipy_s_with_the_covariance_of_each_class(noise, key):
    oas = pytest.importorskip("sklearn.covariance").oas  # shrunk covariances
    data, point = np.asarray(images(key)), np.asarray(jr.normal(key, (SIDE, SIDE)))
    logs = []
    for label, share in enumerate([41 / 62, 21 / 62]):
        mine = data[LABELS == label].reshape(-1, SIDE**2)
        covariance = oas(mine)[0] + noise**2 * np.eye(SIDE**2)
        density = multivariate_normal(mine.mean(axis=0), covariance)
        logs += [
            density.logpdf(np.rot90(point, turn).ravel()) + np.log(share / 4)
            for turn in range(4)
        ]
    normals, point = law(key), jnp.asarray(point)
    log_density = eqx.filter_jit(normals.log_density)
    found = log_density(point, jnp.array(noise))
    assert np.isclose(found, logsumexp(logs))
    assert not np.isclose(log_density(point, jnp.array(0.8)), found)


@pytest.mark.parametrize(("scale", "is_right"), [(1.0, True), (1.3, False)])
def test_samples_are_the_density_s(scale, is_right, key):
    # The score of exact samples has the mean zero; so has 1 + x s / d, over all.
    # The broken twin has samples that are too wide.
    normals, noise = law(key), jnp.array(0.3)
    points = normals.sample(key, 4_000) * scale
    points += noise * jr.normal(jr.fold_in(key, 1), points.shape)
    score = jax.jit(jax.vmap(jax.grad(lambda x: normals.log_density(x, noise))))
    stein = np.asarray(1 + jnp.mean(points * score(points), axis=(1, 2)))
    assert (abs(stein.mean()) < 4 * stein.std() / len(stein) ** 0.5) == is_right


@pytest.mark.slow
@pytest.mark.parametrize(("label", "other"), [(0, 1), (1, 0)])
def test_images_of_a_class_are_drawn_from_noise(label, other, key):
    energy = energies(key)
    points = generator_of(60).sample(key, energy, 300, label)
    normals, noise = law(key), jnp.array(0.5)
    mine, theirs = (
        jnp.mean(jax.vmap(normals.of_class(k).log_density, (0, None))(points, noise))
        for k in (label, other)
    )
    assert mine > theirs + 1
    mean = np.asarray(jnp.mean(points))
    error = np.std(np.mean(points, axis=(1, 2))) / 300**0.5
    assert abs(mean - float(jnp.mean(normals.means[label]))) < 4 * error
    assert abs(mean - float(jnp.mean(normals.means[other]))) > 4 * error


@pytest.mark.slow
def test_held_pixels_keep_their_values_and_others_are_drawn(key):
    mask = jnp.arange(SIDE) < 1
    clamp = Clamp(jnp.full((SIDE, SIDE), 0.5), mask)
    points = generator_of(10).sample(key, energies(key), 5, clamp)
    assert np.all(points[:, mask] == 0.5)
    assert np.std(points[:, ~mask]) > 0.1


def test_classes_share_the_energy_by_the_network_s_softmax(key):
    energy, point = energies(key), jr.normal(key, (SIDE, SIDE))
    sigma = energy.sigma_min / energy.scale
    found = eqx.filter_jit(energy.evaluate)(point)
    told = eqx.filter_jit(energy.network.classes)(point, sigma)
    assert np.allclose(found.logits, told)
    assert np.isclose(found.energy, eqx.filter_jit(energy)(point))
    assert energy.num_classes((SIDE, SIDE)) == 2
    plain = energies(key, None)
    assert eqx.filter_eval_shape(plain.evaluate, point).logits is None


def test_what_does_not_fit_is_refused(key):
    with pytest.raises(ValueError, match="`sigma_min`"):
        energies(key, sigma_max=0.01)
    with pytest.raises(ValueError, match="`data`"):
        BlurredNormals(images(key)[:1], GROUP)
    for num_classes, label in ((2, 2), (None, 0)):
        with pytest.raises(ValueError, match="class"):
            energies(key, num_classes).condition(label)


def test_few_points_leave_no_direction_without_width(key):
    """Of 8 points in 64 directions: 4 of their own, and the same in all others."""
    data = jr.normal(key, (8, 8, 8))
    found = BlurredNormals(data, GROUP)
    assert found.variances.shape == (1, 4)
    assert float(found.rest[0]) > 0.01
    spread = jnp.sum(found.variances) + 60 * found.rest[0]
    assert np.isclose(spread, jnp.sum(jnp.var(data, axis=0)), rtol=1e-4)


def test_classes_of_unequal_numbers_have_the_law_that_each_has_alone(key):
    """Of 8 and 3 points in 64 directions: 4 and 1 of their own."""
    data, labels = jr.normal(key, (11, 8, 8)), jnp.arange(11) // 8
    data = data * jnp.array([1.0, 2.0])[labels][:, None, None]
    together, noise = BlurredNormals(data, GROUP, labels, 2), jnp.array(0.5)
    point = data[0] / 2
    at_point = eqx.filter_jit(lambda normals: normals.log_density(point, noise))
    alone = [at_point(BlurredNormals(data[labels == i], GROUP)) for i in range(2)]
    for label in range(2):
        found = at_point(together.of_class(label))
        assert np.isclose(found, alone[label], rtol=1e-5)
    assert not np.isclose(alone[0], alone[1], rtol=1e-2)
    shares = np.log(np.array([9, 4]) / 13)
    found = at_point(together)
    assert np.isclose(found, logsumexp(np.array(alone) + shares), rtol=1e-5)
