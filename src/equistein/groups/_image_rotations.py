"""Quarter rotations of images, with or without reflections."""

import jax.numpy as jnp
from jaxtyping import Array, Int

from equistein._gate import gate
from equistein._products import tensordot
from equistein._types import Point
from equistein.groups._base import AbstractFiniteGroup, uneven


@gate
class ImageRotations(AbstractFiniteGroup):
    r"""The quarter rotations of a square image: C4; with reflections D4.

    Acts on points of shape `(n, n)` or `(n, n, channel)` by moving pixels. The element
    $4m + k$ reflects the columns if $m = 1$, and then rotates by $k$ quarters, as
    `np.rot90` does.
    The representative is the image of the orbit with the largest product with a fixed
    image that has no symmetry.

    Args:
        reflections: Whether mirror images belong to the orbit.
    """

    reflections: bool = False

    @property
    def order(self) -> int:
        return 8 if self.reflections else 4

    def elements(self) -> Int[Array, " order"]:
        return jnp.arange(self.order)

    def act(self, element: Int[Array, ""], point: Point) -> Point:
        self.check_shape(point.shape)
        turns, mirrored = element % 4, element >= 4
        point = jnp.where(mirrored, point[:, ::-1], point)
        point = jnp.where(turns % 2 == 1, jnp.swapaxes(point, 0, 1), point)
        point = jnp.where((turns == 1) | (turns == 2), point[::-1], point)
        return jnp.where(turns >= 2, point[:, ::-1], point)

    def compose(
        self, left: Int[Array, "*stack"], right: Int[Array, "*stack"]
    ) -> Int[Array, "*stack"]:
        sign = jnp.where(left >= 4, -1, 1)  # a reflection turns turns around
        turns = (left % 4 + sign * (right % 4)) % 4
        return turns + 4 * ((left // 4 + right // 4) % 2)

    def inverse(self, element: Int[Array, "*stack"]) -> Int[Array, "*stack"]:
        return jnp.where(element >= 4, element, -element % 4)

    def canonicalize(self, point: Point) -> Point:
        copies = self.orbit(point)
        products = tensordot(copies, uneven(point), axes=point.ndim)
        return copies[jnp.argmax(products)]

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if len(shape) not in (2, 3) or shape[0] != shape[1]:
            raise ValueError(
                "ImageRotations acts on points of shape (n, n) or (n, n, channel), "
                f"square images, but got points of shape {shape}. Crop or pad them, "
                "or put the channels last."
            )
