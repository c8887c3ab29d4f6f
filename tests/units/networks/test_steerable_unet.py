import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jax.scipy.special import logsumexp

from equistein.groups import ImageRotations, Trivial
from equistein.networks import SteerableConv, SteerableUNet

NOISE = 0.1


def unet(key, **options):
    options = {"fields": (2, 2), "num_blocks": 1, "noise": NOISE} | options
    return SteerableUNet((4, 4, 1), key=key, **options)


@pytest.mark.slow
def test_the_energy_is_the_distance_to_the_cleaned_image_and_turns_with_it(key):
    network, point = unet(key, out_size=3), jr.normal(key, (4, 4, 1))
    cleaned = eqx.filter_jit(network.cleaned)
    distance = jnp.sum((point - cleaned(point)) ** 2)
    logits = eqx.filter_jit(network)(point)
    assert np.isclose(logsumexp(logits), -distance / (2 * NOISE**2))
    assert np.ptp(logits) > 1e-4  # the classes differ
    turned = cleaned(jnp.rot90(point))
    assert np.allclose(turned, jnp.rot90(cleaned(point)))
    assert not np.allclose(turned, cleaned(point))


def test_an_adjoint_turns_products_around(key):
    layer = SteerableConv(
        1, 2, group=ImageRotations(), size=4, stride=2, lifting=True, image_size=4,
        key=key,
    )  # fmt: skip
    image, maps = jr.normal(key, (4, 4, 1)), jr.normal(key, (2, 2, 8))
    there = jnp.sum(maps * (layer(image) - layer(0 * image)))
    assert np.isclose(there, jnp.sum(layer.adjoint(maps) * image))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fields": ()}, "`fields`"),
        ({"fields": (0,)}, "fields"),
        ({"noise": 0.0}, "noise"),
        ({"num_blocks": 0}, "num_blocks"),
        ({"symmetry": Trivial(), "scale": -1.0}, "scale"),
    ],
)
def test_arguments_out_of_range_are_refused(options, words, key):
    with pytest.raises(ValueError, match=words):
        unet(key, **options)


def test_images_must_be_square_and_of_the_shape_it_was_made_for(key):
    with pytest.raises(ValueError, match="square images"):
        SteerableUNet((4, 6), noise=0.1, key=key)
    with pytest.raises(ValueError, match=r"made for images of shape \(4, 4, 1\)"):
        unet(key)(jnp.ones((6, 6, 1)))
