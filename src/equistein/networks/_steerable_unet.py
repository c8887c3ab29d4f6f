"""A U-shaped network of images whose value is how far an image is from clean ones."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from equistein._numbers import check_integers, check_positive
from equistein._types import Key, Point
from equistein.groups import ImageRotations
from equistein.networks._base import AbstractNetwork
from equistein.networks._noise_mlp import noise_waves, NUM_WAVES
from equistein.networks._steerable_conv import ImageGroup, SteerableConv

_GAIN = 0.3  # of what a block adds, at first
_FIRST = 0.1  # of the usual size of the weights that make U(x), at first
_UNITS = 64  # between the features and the classes
_FLOOR = 0.1  # of the data's mean square, added to that of an image


class SteerableUNet(AbstractNetwork):
    r"""Logits of an energy that is the distance of an image to a cleaned one.

    $$f(x)[y] = -\frac{|x - U(x)|^2}{2 \sigma_0^2} + \log \mathrm{softmax}(g(x))[y]$$

    U is a U-shaped steerable network of as many pixels as x, which turns with it, and g
    are classes from the features at its bottom. As an energy, $-\log\sum_y e^{f(x)[y]}$
    is the first term alone. U learns what the data would be without noise; the image is
    divided by its root mean square before, and the bottom is told it, so that noise of
    all levels looks alike.

    Each level halves an even side, by filters of 4 x 4 pixels and a stride of 2, which
    commute with quarter turns; the way up are adjoints of such. The blocks add to what
    they are given, and what a level has on the way down is added on the way up.

    Args:
        shape: The shape of an image, `(n, n, channel)`, or `(n, n)` for one channel.
        fields: The fields of each level, of 4 channels each (8 with reflections, 1
            without symmetry), from the finest on.
        num_blocks: The blocks at the bottom; other levels have one on each way.
        symmetry: `ImageRotations()`, `ImageRotations(reflections=True)` or `Trivial()`.
        noise: The noise $\sigma_0 > 0$ that the energy is to be right for.
        scale: The root mean square of the data's pixels.
        out_size: The number of classes, or None for one number.
        key: The source of the weights.

    Raises:
        ValueError: If an argument is out of range, or the images are not square.

    References:
        Salimans and Ho (2021), Should EBMs model the energy or the score?; Li, Chen and
        Sommer (2019), Learning energy-based models in high-dimensional spaces with
        multi-scale denoising score matching; Weiler and Cesa (2019).
    """

    down: tuple[SteerableConv, ...]
    before: tuple["Block", ...]
    bottom: tuple["Block", ...]
    context: tuple[eqx.nn.Linear, ...]
    after: tuple["Block", ...]
    up: tuple[SteerableConv, ...]
    head: eqx.nn.MLP | None
    noise: float
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
        noise: float,
        scale: float = 1.0,
        out_size: int | None = None,
        key: Key,
    ):
        symmetry = ImageRotations() if symmetry is None else symmetry
        check_positive("SteerableUNet", noise=noise, scale=scale)
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
        # At first little is cleaned away: the energy is that of a wide normal law.
        up[0] = eqx.tree_at(lambda layer: layer.weight, up[0], _FIRST * up[0].weight)
        self.up, self.after = tuple(up), tuple(after)
        self.bottom = tuple(
            Block(width, symmetry, side, next(keys)) for _ in range(num_blocks)
        )
        self.context = tuple(
            eqx.nn.Linear(NUM_WAVES + width, width, key=next(keys)) for _ in self.bottom
        )
        self.head = None
        if out_size is not None:
            self.head = eqx.nn.MLP(
                width, out_size, _UNITS, 1, jax.nn.silu, key=next(keys)
            )
        self.noise, self.scale = float(noise), float(scale)
        self.symmetry, self.shape = symmetry, tuple(shape)

    def __call__(self, point: Point) -> Float[Array, "*class"]:
        cleaned, features = self._cleaned(point)
        density = -jnp.sum((point - cleaned) ** 2) / (2 * self.noise**2)
        if self.head is None:
            return density
        return density + jax.nn.log_softmax(self.head(features))

    def cleaned(self, point: Point) -> Point:
        """Return $U(x)$."""
        return self._cleaned(point)[0]

    def all_invariants(self, point: Point) -> Float[Array, " field"]:
        """Return invariant features of the bottom, and the distance to U(x)."""
        cleaned, features = self._cleaned(point)
        apart = jnp.mean((point - cleaned) ** 2)
        return jnp.append(features, jnp.log(apart + 1e-12))

    def _cleaned(self, point: Point) -> tuple[Point, Float[Array, " field"]]:
        """Return $U(x)$, and invariant features of the bottom."""
        self.group(point.shape)
        image = point.reshape(*self.shape[:2], -1)
        size = jnp.sqrt(jnp.mean(image**2) + _FLOOR * self.scale**2)
        maps = self.down[0](image / size)
        kept = []
        for block, layer in zip(self.before, self.down[1:], strict=True):
            kept.append(block(maps))
            maps = layer(jax.nn.silu(kept[-1]))
        waves, order = noise_waves(size / self.scale), self.symmetry.order
        for block, context in zip(self.bottom, self.context, strict=True):
            told = jnp.concatenate([waves, self._pooled(maps)])
            maps = block(maps, jnp.tile(context(told), order))
        features = self._pooled(jax.nn.silu(maps))
        for block, layer in zip(self.after[::-1], self.up[:0:-1], strict=True):
            maps = block(layer.adjoint(jax.nn.silu(maps)) + kept.pop())
        return self.up[0].adjoint(jax.nn.silu(maps)).reshape(point.shape), features

    def _pooled(self, maps: Float[Array, "y x channel"]) -> Float[Array, " field"]:
        """Return the means of fields over pixels and group elements."""
        elements = maps.reshape(-1, self.symmetry.order, self.down[-1].bias.size)
        return jnp.mean(elements, axis=(0, 1))

    def group(self, shape: tuple[int, ...]) -> ImageGroup:
        if shape != self.shape:
            raise ValueError(
                f"This network was made for images of shape {self.shape}, but got one "
                f"of shape {shape}. Resize the images, or build another network."
            )
        return self.symmetry


class Block(eqx.Module):
    r"""Two convolutions that add to maps, $h + a\, C_2 \phi(C_1 \phi(h) + c)$.

    Args:
        fields: The number of fields.
        group: The symmetry.
        side: The side of the maps.
        key: The source of the weights.
    """

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
