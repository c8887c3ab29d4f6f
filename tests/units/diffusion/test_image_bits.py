import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import pytest

import equistein as es
from equistein.diffusion import image_bits
from equistein.models import image_model, ImageSettings

pytestmark = pytest.mark.slow
IMAGES = jr.uniform(jr.key(0), (24, 4, 4, 1))
SETTINGS = ImageSettings(fields=(2,), num_blocks=1, sigma_min=0.2)


@pytest.fixture(scope="module")
def untrained():
    """Energies that are the normal laws: their Z is 1."""
    turns = es.groups.ImageRotations()
    return image_model(jr.key(1), turns, IMAGES, settings=SETTINGS).energy


def louder(energy, size):
    """Return energies whose network says something."""
    network = jax.tree.map(
        lambda leaf: leaf + size if eqx.is_inexact_array(leaf) else leaf, energy.network
    )
    return eqx.tree_at(lambda e: e.network, energy, network)


def test_energies_that_learned_nothing_cost_what_the_normal_laws_do(untrained):
    found = image_bits(jr.key(2), untrained, IMAGES, num_steps=4)
    bits = found["bits_per_dimension"]
    assert jnp.isclose(bits, found["bits_per_dimension_of_normals"], atol=1e-3)
    assert found["bits_per_dimension_gap"] < 1e-3
    assert 4 < bits < 9  # uniform pixels cost 8, the blurred ones a little more


def test_both_ways_to_the_normalizer_are_told_apart(untrained):
    found = image_bits(jr.key(2), louder(untrained, 0.3), IMAGES, num_steps=4)
    assert found["bits_per_dimension_gap"] > 1e-3
