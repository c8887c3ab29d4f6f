"""Every objective on the networks that learn clouds and images."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.diffusion import (
    DenoisingScoreMatching,
    NoiseConditionalScoreMatching,
    ScoreMatching,
)
from equistein.energies import PlainEnergy
from equistein.groups import ImageRotations, PointCloud
from equistein.models import (
    DenoisingSettings,
    energy_for,
    for_data,
    image_model,
    ImageSettings,
)
from equistein.networks import SteerableCNN
from equistein.samplers import Langevin
from equistein.training import (
    Batch,
    ContrastiveDivergence,
    ForceMatching,
    FromData,
    SquaredError,
)

NUM = 4
CLASSES, ENERGIES = jnp.arange(NUM) % 2, jnp.linspace(-1.0, 1.0, NUM)
CLOUDS = 2 * jr.normal(jr.key(0), (NUM, 4, 3))
IMAGES = jr.uniform(jr.key(0), (NUM, 6, 6, 1))
CLOUD = PointCloud((0, 0, 1, 1), 3)
pytestmark = pytest.mark.slow


ONE_LEVEL = {
    "contrastive": lambda data: ContrastiveDivergence(FromData(Langevin(0.1), 2)),
    "denoising": lambda data: DenoisingScoreMatching(0.3),
    "denoising over levels": lambda data: DenoisingScoreMatching(0.3, 2.0),
    "score matching": lambda data: ScoreMatching(),
    "force matching": lambda data: ForceMatching(-data),
    "squared error": lambda data: SquaredError(),
}
ALL_LEVELS = {
    "score matching": NoiseConditionalScoreMatching,
}


def trained(objective, energy, data, labels=None):
    """Return the loss of a batch, and the largest number of each weight's gradient."""
    batch = Batch(data, labels, jnp.arange(NUM))
    state = objective.init(jr.key(2), energy, batch)

    @eqx.filter_jit
    @eqx.filter_value_and_grad
    def loss(energy):
        return objective.loss(jr.key(3), energy, state, batch)[0]

    value, gradient = loss(energy)
    leaves = jax.tree.leaves(eqx.filter(gradient, eqx.is_inexact_array))
    return float(value), np.array([float(jnp.max(jnp.abs(leaf))) for leaf in leaves])


def learns(value, gradients):
    """Whether a loss is a number, and half of the arrays, of whom none fails, move.

    Means and widths of features stay, and so do constants that a slope does not see.
    """
    finite = np.isfinite(value) and np.all(np.isfinite(gradients))
    return bool(finite and np.mean(gradients > 0) >= 0.5)


@pytest.mark.parametrize("make", ONE_LEVEL.values(), ids=ONE_LEVEL.keys())
@pytest.mark.parametrize("kind", ["images", "distances"])
def test_an_energy_of_one_level_learns_by_it(make, kind):
    data = IMAGES if kind == "images" else CLOUDS
    energy = PlainEnergy(SteerableCNN((6, 6, 1), (2, 2), key=jr.key(1)))
    if kind == "distances":
        energy = energy_for(jr.key(1), CLOUD, CLOUDS, widths=(8, 8))
    objective = make(data)
    labels = ENERGIES if objective.uses_labels else None
    assert learns(*trained(objective, energy, data, labels))


@pytest.mark.parametrize("make", ALL_LEVELS.values(), ids=ALL_LEVELS.keys())
def test_an_energy_of_clouds_at_all_levels_learns_by_it(make):
    settings = DenoisingSettings(width=8, depth=2, sigma_min=0.3)
    energy = for_data(jr.key(1), CLOUD, CLOUDS, settings=settings).energy
    assert learns(*trained(make(), energy, CLOUDS))


@pytest.mark.parametrize(
    "make", [NoiseConditionalScoreMatching, lambda: ONE_LEVEL["contrastive"](IMAGES)]
)
def test_an_energy_of_images_at_all_levels_learns_by_it(make):
    settings = ImageSettings(fields=(2, 2), num_blocks=1)
    energy = image_model(jr.key(1), ImageRotations(), IMAGES, CLASSES, settings).energy
    energy = eqx.tree_at(lambda e: e.network, energy, awake(energy.network))
    assert learns(*trained(make(), energy, IMAGES))


def awake(network):
    """Return a network whose last layer, zero at first, is not."""
    nudged = lambda leaf: leaf + 0.01 if eqx.is_inexact_array(leaf) else leaf
    return jax.tree.map(nudged, network)
