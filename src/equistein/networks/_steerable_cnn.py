"""Convolutional networks that are invariant under rotations of an image."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from equistein._check_arguments import check_arguments
from equistein._numbers import check_integers, check_positive
from equistein._types import Key, Point
from equistein.groups import ImageRotations, Trivial
from equistein.networks._base import AbstractNetwork
from equistein.networks._steerable_conv import (
    ImageGroup,
    mean_pool,
    SteerableConv,
    symmetry_at,
)


@check_arguments
class SteerableCNN(AbstractNetwork):
    """A smooth function of a square image, invariant under quarter rotations.

    Steerable convolutions, each with an activation and an optional pool of 2 x 2
    pixels; then the group elements and the pixels are averaged, and a linear layer
    gives the outputs. With `Trivial()` as symmetry it is an ordinary CNN.

    Args:
        shape: The shape of an image, `(n, n, channel)`, or `(n, n)` for one channel.
        fields: The number of fields of each layer, of 4 channels each (8 with
            reflections, 1 without symmetry).
        symmetry: `ImageRotations()`, `ImageRotations(reflections=True)` or `Trivial()`.
        sizes: The side of the filters of each layer; 3 by default.
        strides: The stride of each layer; 1 by default.
        pool_after: The layers, counted from 1, after which squares of 2 x 2 pixels are
            averaged.
        out_size: The number of outputs, or None for one number.
        scale: The number that the pixels are divided by.
        activation: The activation, which should be smooth.

    References:
        Jaini, Holdijk and Welling (2021), appendix E.3; Weiler and Cesa (2019).
    """

    convolutions: tuple[SteerableConv, ...]
    head: eqx.nn.Linear
    scale: Float[Array, ""]
    symmetry: ImageGroup
    shape: tuple[int, ...] = eqx.field(static=True)
    pool_after: tuple[int, ...] = eqx.field(static=True)
    activation: Callable

    def __init__(
        self,
        shape: tuple[int, ...],
        fields: Sequence[int] = (4, 8, 8, 8, 8, 8, 16, 16),
        *,
        symmetry: ImageGroup | None = None,
        sizes: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
        pool_after: Sequence[int] = (),
        out_size: int | None = None,
        scale: float = 1.0,
        activation: Callable = jax.nn.silu,
        key: Key,
    ):
        symmetry = ImageRotations() if symmetry is None else symmetry
        depth = len(fields)
        sizes = [3] * depth if sizes is None else list(sizes)
        strides = [1] * depth if strides is None else list(strides)
        _check(shape, fields, sizes, strides, pool_after)
        check_positive("SteerableCNN", scale=scale)
        if out_size is not None:
            check_integers("SteerableCNN", out_size=out_size)
        side, before = shape[0], shape[2] if len(shape) == 3 else 1
        keys = jr.split(key, depth + 1)
        layers = []
        for index, after in enumerate(fields):
            layer = SteerableConv(
                before, after, group=symmetry, size=sizes[index], stride=strides[index],
                lifting=index == 0, image_size=side, key=keys[index],
            )  # fmt: skip
            layers.append(layer)
            before, side = after, layer.output_size
            if index + 1 in pool_after and side % 2:
                raise ValueError(
                    f"After layer {index + 1} the maps have the side {side}, and a "
                    "pool of 2 x 2 pixels would not be equivariant. Choose other "
                    "`pool_after`, or pad the images."
                )
            side = side // 2 if index + 1 in pool_after else side
        self.convolutions = tuple(layers)
        outputs: Any = out_size or "scalar"
        self.head = eqx.nn.Linear(fields[-1], outputs, key=keys[-1])
        self.scale = jnp.asarray(float(scale))
        self.symmetry = symmetry
        self.shape = tuple(shape)
        self.pool_after = tuple(pool_after)
        self.activation = activation

    def __call__(self, point: Point) -> Float[Array, "*class"]:
        return self.head(self.invariants(point))

    @property
    def num_outputs(self) -> int:
        return self.head.weight.shape[0]

    def invariants(self, point: Point) -> Float[Array, " field"]:
        """Return the features that the linear layer takes."""
        return self._pool(self.maps(point)[-1])

    def all_invariants(self, point: Point) -> Float[Array, " field"]:
        """Return the invariant features of all layers, one after another."""
        return jnp.concatenate([self._pool(maps) for maps in self.maps(point)])

    def maps(self, point: Point) -> list[Float[Array, "y x channel"]]:
        """Return each layer's maps, which rotate with the image."""
        self.group(point.shape)
        point = point.reshape(*self.shape[:2], -1)
        maps = point / jax.lax.stop_gradient(self.scale).astype(point.dtype)
        layers = []
        for index, convolution in enumerate(self.convolutions):
            maps = self.activation(convolution(maps))
            if index + 1 in self.pool_after:
                maps = mean_pool(maps)
            layers.append(maps)
        return layers

    def _pool(self, maps: Array) -> Array:
        """Average the group elements of maps, and their pixels."""
        elements = maps.reshape(*maps.shape[:2], self.symmetry.order, -1)
        return jnp.mean(jnp.mean(elements, axis=2), axis=(0, 1))

    def num_weights(self) -> int:
        """Return the number of parameters that are trained."""
        parts = (self.convolutions, self.head)
        leaves = jax.tree.leaves(eqx.filter(parts, eqx.is_inexact_array))
        return sum(leaf.size for leaf in leaves)

    def group(self, shape: tuple[int, ...]) -> ImageGroup:
        return symmetry_at(self.symmetry, self.shape, shape)


@check_arguments
def plain_twin(network: SteerableCNN, *, key: Key) -> SteerableCNN:
    """Return a CNN without symmetry, of the same depth and number of parameters.

    Its layers are wider by one factor; with thousands of parameters, the counts are
    equal to a percent.
    """
    sizes = [conv.size for conv in network.convolutions]
    outputs = network.head.weight.shape[0]
    return SteerableCNN(
        network.shape, _plain_fields(network, outputs), symmetry=Trivial(), sizes=sizes,
        strides=[conv.stride for conv in network.convolutions],
        pool_after=network.pool_after,
        out_size=None if network.head.out_features == "scalar" else outputs,
        scale=float(network.scale), activation=network.activation, key=key,
    )  # fmt: skip


def _plain_fields(network: SteerableCNN, outputs: int) -> list[int]:
    """Return the fields of a plain CNN with nearly as many parameters."""
    wanted = network.num_weights()
    channels = network.convolutions[0].weight.shape[1]

    def excess(fields: list[int]) -> int:
        layers = zip(network.convolutions, [channels, *fields], fields, strict=False)
        weights = sum(c.size**2 * a * b + b for c, a, b in layers)
        return weights + (fields[-1] + 1) * outputs - wanted

    distance = lambda fields: abs(excess(fields))
    first = [conv.bias.size for conv in network.convolutions]
    factor, options = 1.0, [first]
    while excess(options[-1]) <= 0:
        factor *= 1.002
        options.append([math.floor(factor * num) for num in first])
    fields = min(options, key=distance)
    for index, num in enumerate(fields):  # then by single channels
        near = (num, max(1, num - 1), num + 1)
        nearby = [[*fields[:index], n, *fields[index + 1 :]] for n in near]
        fields = min(nearby, key=distance)
    return fields


def _check(shape, fields, sizes, strides, pool_after) -> None:
    whole = all(type(side) is int and side >= 1 for side in shape)
    if not whole or len(shape) not in (2, 3) or shape[0] != shape[1]:
        raise ValueError(
            "SteerableCNN needs `shape`, that of square images (n, n, channel) or "
            f"(n, n), but got {shape!r}. Crop or pad them."
        )
    for name, values in (("fields", fields), ("sizes", sizes), ("strides", strides)):
        whole = all(type(value) is int and value >= 1 for value in values)
        if not whole or len(values) != len(fields) or not fields:
            raise ValueError(
                f"SteerableCNN needs `{name}`, one positive integer a layer, but got "
                f"{tuple(values)!r} for {len(fields)} layers."
            )
    if not set(pool_after) <= set(range(1, len(fields) + 1)):
        raise ValueError(
            f"SteerableCNN needs `pool_after`, layers from 1 to {len(fields)}, but got "
            f"{tuple(pool_after)!r}."
        )
