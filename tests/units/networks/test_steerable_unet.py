import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.groups import ImageRotations
from equistein.networks import SteerableConv, SteerableUNet


def unet(key, **options):
    options = {"fields": (2, 2), "num_blocks": 1} | options
    return SteerableUNet((4, 4, 1), key=key, **options)


def test_the_gradient_turns_with_the_image_and_the_classes_do_not(key):
    network, point = unet(key, num_classes=3), jr.normal(key, (4, 4, 1))
    slope, noise = eqx.filter_jit(eqx.filter_grad(network)), jnp.array(0.5)
    there = slope(point, noise)
    assert np.allclose(slope(jnp.rot90(point), noise), jnp.rot90(there))
    assert not np.allclose(slope(jnp.rot90(point), noise), there)
    classes_of = eqx.filter_jit(network.classes)
    classes = classes_of(point, noise)
    assert np.allclose(classes_of(jnp.rot90(point), noise), classes)
    assert np.ptp(classes) > 1e-4


def test_images_and_noise_have_the_units_of_the_data(key):
    network, point = unet(key), jr.normal(key, (4, 4, 1))
    scaled = unet(key, scale=3.0)
    network, scaled = (
        eqx.filter_jit(lambda x, each=each: each(x, jnp.array(0.5)))
        for each in (network, scaled)
    )
    assert np.isclose(scaled(3 * point), network(point))
    assert not np.isclose(scaled(point), network(point))


def test_an_adjoint_turns_products_around(key):
    layer = SteerableConv(
        1, 2, group=ImageRotations(), size=4, stride=2, lifting=True, image_size=4,
        key=key,
    )  # fmt: skip
    image, maps = jr.normal(key, (4, 4, 1)), jr.normal(key, (2, 2, 8))
    forth = eqx.filter_jit(layer)
    there = np.sum(maps * (forth(image) - forth(0 * image)))
    assert np.isclose(there, np.sum(eqx.filter_jit(layer.adjoint)(maps) * image))


def test_images_must_be_square_and_of_the_shape_it_was_made_for(key):
    with pytest.raises(ValueError, match="square images"):
        SteerableUNet((4, 6), key=key)
    with pytest.raises(ValueError, match=r"made for images of shape \(4, 4, 1\)"):
        unet(key)(jnp.ones((6, 6, 1)))


@pytest.mark.parametrize("name", ["fields", "num_blocks", "scale"])
def test_values_out_of_range_are_refused(name, key):
    for value in {"fields": [(), (0,)], "num_blocks": [0], "scale": [-1.0]}[name]:
        with pytest.raises(ValueError, match=name):
            unet(key, **{name: value})
