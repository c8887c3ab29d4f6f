"""A U-shaped network of images and the noise in them, which rotates with images."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from equistein._check_arguments import check_arguments
from equistein._numbers import check_integers, check_positive
from equistein._types import Key, Point, Scalar
from equistein.groups import ImageRotations
from equistein.networks._base import AbstractNoiseNetwork
from equistein.networks._mlp import noise_waves, NUM_WAVES
from equistein.networks._steerable_conv import ImageGroup, SteerableConv, symmetry_at

_GAIN = 0.3  # of what a block adds, at first
_LEAK = 0.01  # of what is below 0, in the last activation
_UNITS = 64  # between the features and the classes


@check_arguments
class SteerableUNet(AbstractNoiseNetwork):
    r"""A function of an image and its noise, invariant under quarter rotations.

    $$f(x, \sigma) = u \cdot V(u, \sigma), \qquad
      u = \frac{x}{s \sqrt{1 + \sigma^2}}$$

    V is a U-shaped equivariant network of as many pixels as x, s the data's root mean
    square and $\sigma$ the noise in units of s. The gradient of f denoises the image;
    `classes` are logits from the features at the bottom, which depends on the noise.

    Each level halves an even side, by filters of 4 x 4 pixels and a stride of 2; the
    way up are adjoints of such. Blocks are residual, with skip connections between the
    levels of both ways.

    Args:
        shape: The shape of an image, `(n, n, channel)`, or `(n, n)` for one channel.
        fields: The fields of each level, of 4 channels each (8 with reflections, 1
            without symmetry), from the finest on.
        num_blocks: The blocks at the bottom; other levels have two.
        symmetry: `ImageRotations()`, `ImageRotations(reflections=True)` or `Trivial()`.
        scale: The root mean square s of the data's pixels.

    References:
        Salimans and Ho (2021), Should EBMs model the energy or the score?, for the
        product; Ronneberger, Fischer and Brox (2015); Weiler and Cesa (2019).
    """

    down: tuple[SteerableConv, ...]
    before: tuple["Block", ...]
    bottom: tuple["Block", ...]
    context: tuple[eqx.nn.Linear, ...]
    after: tuple["Block", ...]
    up: tuple[SteerableConv, ...]
    head: eqx.nn.MLP | None
    scale: float
    symmetry: ImageGroup
    shape: tuple[int, ...] = eqx.field(static=True)

    def __init__(
        self,
        shape: tuple[int, ...],
        fields: Sequence[int] = (4, 12),
        *,
        num_blocks: int = 2,
        symmetry: ImageGroup | None = None,
        scale: float = 1.0,
        num_classes: int | None = None,
        key: Key,
    ):
        symmetry = ImageRotations() if symmetry is None else symmetry
        check_positive("SteerableUNet", scale=scale)
        check_integers("SteerableUNet", num_blocks=num_blocks)
        for index, num in enumerate(fields):
            check_integers("SteerableUNet", **{f"fields[{index}]": num})
        if len(shape) not in (2, 3) or shape[0] != shape[1] or not fields:
            raise ValueError(
                "SteerableUNet needs `shape`, that of square images (n, n, channel) or "
                f"(n, n), and `fields`, but got {shape!r} and {tuple(fields)!r}."
            )
        keys = iter(jr.split(key, 3 + 4 * len(fields) + 2 * num_blocks))
        down, up, before, after = [], [], [], []
        side, width = shape[0], shape[2] if len(shape) == 3 else 1
        for index, num in enumerate(fields):
            halved = side % 2 == 0
            layer, back = (
                SteerableConv(
                    width, num, group=symmetry, size=4 if halved else 3,
                    stride=2 if halved else 1, lifting=index == 0, image_size=side,
                    key=next(keys),
                )
                for _ in range(2)
            )  # fmt: skip
            down.append(layer)
            up.append(back)
            side, width = layer.output_size, num
            if index + 1 < len(fields):
                before.append(Block(num, symmetry, side, next(keys)))
                after.append(Block(num, symmetry, side, next(keys)))
        self.down, self.before = tuple(down), tuple(before)
        self.up, self.after = tuple(up), tuple(after)
        self.bottom = tuple(
            Block(width, symmetry, side, next(keys)) for _ in range(num_blocks)
        )
        self.context = tuple(
            eqx.nn.Linear(NUM_WAVES + width, width, key=next(keys)) for _ in self.bottom
        )
        self.head = None
        if num_classes is not None:
            self.head = eqx.nn.MLP(
                width, num_classes, _UNITS, 1, jax.nn.silu, key=next(keys)
            )
        self.scale, self.symmetry, self.shape = float(scale), symmetry, tuple(shape)

    def __call__(self, point: Point, noise: Scalar | None = None) -> Scalar:
        self.group(point.shape)
        noise = jnp.ones((), point.dtype) if noise is None else noise
        image = self._scale(point, noise)
        kept, bottom = self._down(image, noise)
        maps = bottom
        for block, layer in zip(self.after[::-1], self.up[:0:-1], strict=True):
            maps = block(layer.adjoint(jax.nn.silu(maps)) + kept.pop())
        # If all maps were far below 0, silu would be 0, and nothing would be learned.
        active = jax.nn.silu(maps) + _LEAK * maps
        return jnp.sum(image * self.up[0].adjoint(active))

    def classes(self, point: Point, noise: Scalar) -> Float[Array, " class"]:
        """Return the logits of the classes, up to one number for all."""
        assert self.head is not None
        return self.head(self.features(point, noise))

    def features(self, point: Point, noise: Scalar) -> Float[Array, " field"]:
        """Return invariant features of the bottom."""
        return self._pool(jax.nn.silu(self._down(self._scale(point, noise), noise)[1]))

    def silent(self) -> "SteerableUNet":
        """Return the network with f = 0."""
        return eqx.tree_at(
            lambda network: network.up[0].weight, self, 0 * self.up[0].weight
        )

    def _scale(self, point: Point, noise: Scalar) -> Float[Array, "side side channel"]:
        """Return the image, normalized at every noise level."""
        image = point.reshape(*self.shape[:2], -1)
        return image / (self.scale * jnp.sqrt(1 + noise**2))

    def _down(
        self, image: Float[Array, "side side channel"], noise: Scalar
    ) -> tuple[list[Array], Float[Array, "y x field"]]:
        """Return the maps of each level before halving, and those at the bottom."""
        maps, kept = self.down[0](image), []
        for block, layer in zip(self.before, self.down[1:], strict=True):
            kept.append(block(maps))
            maps = layer(jax.nn.silu(kept[-1]))
        waves, order = noise_waves(noise), self.symmetry.order
        for block, context in zip(self.bottom, self.context, strict=True):
            inputs = jnp.concatenate([waves, self._pool(maps)])
            maps = block(maps, jnp.tile(context(inputs), order))
        return kept, maps

    def _pool(self, maps: Float[Array, "y x channel"]) -> Float[Array, " field"]:
        """Return the means of fields over pixels and group elements."""
        elements = maps.reshape(-1, self.symmetry.order, self.down[-1].bias.size)
        return jnp.mean(elements, axis=(0, 1))

    def group(self, shape: tuple[int, ...]) -> ImageGroup:
        return symmetry_at(self.symmetry, self.shape, shape)


class Block(eqx.Module):
    r"""Two convolutions that add to maps, $h + a\, C_2 \phi(C_1 \phi(h) + c)$."""

    first: SteerableConv
    second: SteerableConv
    gain: Float[Array, ""]

    def __init__(self, fields: int, group: ImageGroup, side: int, key: Key):
        self.first, self.second = (
            SteerableConv(fields, fields, group=group, image_size=side, key=key)
            for key in jr.split(key)
        )
        self.gain = jnp.asarray(_GAIN)

    def __call__(
        self,
        maps: Float[Array, "y x channel"],
        context: Float[Array, " channel"] | None = None,
    ) -> Float[Array, "y x channel"]:
        inner = self.first(jax.nn.silu(maps))
        if context is not None:
            inner += context[None, None]
        return maps + self.gain * self.second(jax.nn.silu(inner))
