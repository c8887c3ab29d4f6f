"""Convolutions that commute with quarter turns, beside a brute-force sum."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.groups import check_invariance, ImageRotations, InvarianceError, Trivial
from equistein.networks import plain_twin, SteerableCNN, SteerableConv

C4, D4 = ImageRotations(), ImageRotations(reflections=True)
every_group = pytest.mark.parametrize(
    "group", [C4, pytest.param(D4, marks=pytest.mark.slow), Trivial()], ids=str
)


def turned(array, element):
    """Return an array `(y, x, ...)` after an element, by NumPy's own turns."""
    return np.rot90(array[:, ::-1] if element >= 4 else array, element % 4)


def relative(group, g, h):
    return int(group.compose(group.inverse(jnp.asarray(g)), jnp.asarray(h)))


def group_convolution(layer, maps):
    """Return what the definition gives: sums over taps, fields and elements."""
    order, size = layer.group.order, layer.size
    inputs = 1 if layer.lifting else order
    weight = np.asarray(layer.weight).reshape(size, size, inputs, -1, layer.bias.size)
    maps = np.asarray(maps).reshape(*maps.shape[:2], inputs, -1)
    edge = (size - 1) // 2
    padded = np.pad(maps, ((edge, edge), (edge, edge), (0, 0), (0, 0)))
    places = range(0, len(padded) - size + 1, layer.stride)
    out = np.zeros((len(places), len(places), order, layer.bias.size))
    for (y, top), (x, left), g, h in itertools.product(
        enumerate(places), enumerate(places), range(order), range(inputs)
    ):
        which = 0 if layer.lifting else relative(layer.group, g, h)
        taps = turned(weight[:, :, which], g)
        patch = padded[top : top + size, left : left + size, h]
        out[y, x, g] += np.einsum("yxi,yxio->o", patch, taps)
    return (out + np.asarray(layer.bias)).reshape(len(places), len(places), -1)


CASES = {  # size of the filter, stride, side of the image, whether it lifts
    "lifting": (3, 1, 5, True),
    "lifting by 5": (5, 1, 6, True),
    "lifting by 4, stride 2": (4, 2, 6, True),
    "regular": (3, 1, 4, False),
    "regular by 1": (1, 1, 3, False),
    "regular by 3, stride 2": (3, 2, 5, False),
}


@every_group
@pytest.mark.parametrize(
    ("size", "stride", "side", "lifting"), CASES.values(), ids=CASES.keys()
)
def test_the_matrix_product_is_the_group_convolution(
    group, size, stride, side, lifting, key
):
    layer_key, bias_key, image_key = jr.split(key, 3)
    layer = SteerableConv(
        2, 3, group=group, size=size, stride=stride, lifting=lifting, image_size=side,
        key=layer_key,
    )  # fmt: skip
    layer = eqx.tree_at(lambda c: c.bias, layer, jr.normal(bias_key, (3,)))
    channels = 2 if lifting else 2 * group.order
    maps = jr.normal(image_key, (side, side, channels))
    found = eqx.filter_jit(layer)(maps)
    assert np.allclose(found, group_convolution(layer, maps), atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("group", [C4, D4], ids=str)
def test_turned_images_have_turned_maps_of_permuted_elements(group, key):
    network = SteerableCNN(
        (6, 6, 1), (2, 3, 2), symmetry=group, pool_after=(2,), key=key
    )
    image = jr.normal(key, (6, 6, 1))
    maps = np.asarray(network.maps(image)[-1]).reshape(3, 3, group.order, 2)
    for g in range(group.order):
        moved = network.maps(group.act(jnp.asarray(g), image))[-1]
        sources = [relative(group, g, h) for h in range(group.order)]
        expected = turned(maps[:, :, sources], g)
        assert np.allclose(np.asarray(moved).reshape(expected.shape), expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(jnp.float32, 1e-6), (jnp.float64, 1e-13)]
)
def test_eight_layers_are_exactly_invariant(dtype, tolerance, key):
    network = SteerableCNN(
        (28, 28, 1), (2, 2, 2, 4, 4, 4, 4, 4), pool_after=(1, 3),
        out_size=10, key=key,
    )  # fmt: skip
    network = jax.tree.map(
        lambda leaf: leaf.astype(dtype) if eqx.is_inexact_array(leaf) else leaf, network
    )
    image = jr.uniform(key, (28, 28, 1), dtype)
    values = jax.vmap(eqx.filter_jit(network))(C4.orbit(image))
    assert values.dtype == dtype
    assert np.std(values[0]) > 0.01
    assert np.max(np.abs(values - values[:1])) < tolerance * np.max(np.abs(values))


@pytest.mark.slow
def test_the_plain_twin_is_as_large_and_not_invariant(key):
    network = SteerableCNN(
        (28, 28, 1), (4, 4, 4, 8, 8, 8, 8, 8), pool_after=(1, 3), out_size=10, key=key
    )
    twin = plain_twin(network, key=key)
    assert abs(twin.num_weights() / network.num_weights() - 1) < 0.01
    assert twin.group((28, 28, 1)) == Trivial()
    assert [c.size for c in twin.convolutions] == [c.size for c in network.convolutions]
    image = jr.normal(key, (2, 28, 28, 1))
    check_invariance(lambda x: jnp.sum(network(x)), C4, image, tolerance=1e-10)
    with pytest.raises(InvarianceError):
        check_invariance(lambda x: jnp.sum(twin(x)), C4, image, tolerance=1e-3)


def test_num_weights_counts_what_is_trained(key):
    network = SteerableCNN((6, 6, 1), (2, 3), sizes=(3, 3), out_size=4, key=key)
    lifting, regular, head = 9 * 2 + 2, 9 * 4 * 2 * 3 + 3, 4 * 3 + 4
    assert network.num_weights() == lifting + regular + head


def test_pixels_are_divided_by_the_scale(key):
    one = SteerableCNN((6, 6, 1), (2,), key=key)
    other = SteerableCNN((6, 6, 1), (2,), scale=4.0, key=key)
    image = jr.normal(key, (6, 6, 1))
    value_and_grad = eqx.filter_jit(eqx.filter_value_and_grad(lambda f, x: f(x)))
    value, gradient = value_and_grad(other, 4 * image)
    assert np.isclose(value, value_and_grad(one, image)[0])
    assert gradient.scale == 0  # it is no weight


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"shape": (28, 28, 1), "strides": (2, 1)}, "stride of 2 on an image of side"),
        ({"shape": (7, 7, 1), "pool_after": (1,)}, "a pool of 2 x 2 pixels would"),
        ({"shape": (8, 6, 1)}, "square images|`shape`"),
        ({"fields": (2, 0)}, "`fields`"),
        ({"sizes": (3,)}, "`sizes`"),
        ({"pool_after": (3,)}, "`pool_after`"),
        ({"scale": 0.0}, "`scale`"),
        ({"symmetry": "c4"}, "`symmetry`"),
        ({"out_size": 0}, "`out_size`"),
        ({"shape": (2, 2), "sizes": (2, 2)}, "do not fit on an image of side 1"),
    ],
)
def test_what_would_not_be_equivariant_is_refused(given, words, key, unchecked):
    settings = {"shape": (8, 8, 1), "fields": (2, 2)} | given
    with pytest.raises(ValueError, match=words):
        SteerableCNN(**settings, key=key)


def test_a_stride_is_allowed_where_it_commutes_or_nothing_has_to(key):
    SteerableCNN((29, 29, 1), (2, 2), sizes=(3, 3), strides=(2, 1), key=key)
    SteerableCNN((28, 28, 1), (2, 2), sizes=(4, 3), strides=(2, 1), key=key)
    SteerableCNN((28, 28, 1), (2, 2), strides=(2, 1), symmetry=Trivial(), key=key)


def test_images_of_another_size_are_refused(key):
    network = SteerableCNN((8, 8, 1), (2,), key=key)
    with pytest.raises(ValueError, match=r"made for images of shape \(8, 8, 1\)"):
        network.group((6, 6, 1))
    for shape in ((16, 4, 1), (64,), (8, 8, 3)):
        with pytest.raises(ValueError, match=r"made for images of shape \(8, 8, 1\)"):
            network(jnp.zeros(shape))
    with pytest.raises(ValueError, match="made for images of side 8"):
        network.convolutions[0](jnp.zeros((6, 6, 1)))


def test_an_image_without_channels_is_one_of_a_channel(key):
    flat, deep = (SteerableCNN(s, (2, 2), key=key) for s in ((6, 6), (6, 6, 1)))
    image = jr.normal(key, (6, 6))
    assert flat(image) == deep(image[..., None])
