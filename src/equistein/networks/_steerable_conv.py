"""Convolutions that commute with the quarter rotations of images."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein._check_arguments import check_arguments
from equistein._products import matmul
from equistein._types import Key
from equistein.groups import ImageRotations, Trivial
from equistein.networks._mlp import check_weights

ImageGroup = ImageRotations | Trivial


def symmetry_at(
    symmetry: ImageGroup, made_for: tuple[int, ...], shape: tuple[int, ...]
) -> ImageGroup:
    """Return a network's symmetry, or raise `ValueError` for another shape."""
    if shape != made_for:
        raise ValueError(
            f"This network was made for images of shape {made_for}, but got one of "
            f"shape {shape}. Resize the images, or build another network."
        )
    return symmetry


@check_arguments
class SteerableConv(eqx.Module):
    r"""A convolution over pixels and group elements.

    $$f'_o[p, g] = b_o + \sum_{i, h, q} w_{io}[g^{-1} q, g^{-1} h]\, f_i[p + q, h]$$

    The first layer lifts an image, without $h$. A rotated image has rotated maps with
    permuted elements. Channels are `(element, field)`, the elements as in
    `group.elements()`. With `Trivial` it is an ordinary convolution. It is one matrix
    product of extracted patches, since XLA's convolution in a compiled loop uses a
    single core of a CPU.

    Args:
        in_fields: The fields of the input; for a lifting layer the image's channels.
        out_fields: The fields of the output; each has a channel an element.
        group: `ImageRotations()`, with or without reflections, or `Trivial()`.
        size: The side of the filter.
        stride: The step from output pixel to output pixel.
        lifting: Whether the input is an image, not fields.
        image_size: The side of the input.

    References:
        Cohen and Welling (2016), Group equivariant convolutional networks; Weiler and
        Cesa (2019), General E(2)-equivariant steerable CNNs.
    """

    weight: Float[Array, "tap in out"]
    bias: Float[Array, " out"]
    group: ImageGroup = eqx.field(static=True)
    size: int = eqx.field(static=True)
    stride: int = eqx.field(static=True)
    lifting: bool = eqx.field(static=True)
    image_size: int = eqx.field(static=True)

    def __init__(
        self,
        in_fields: int,
        out_fields: int,
        *,
        group: ImageGroup,
        size: int = 3,
        stride: int = 1,
        lifting: bool = False,
        image_size: int,
        key: Key,
    ):
        numbers = (in_fields, out_fields, size, stride, image_size)
        if not all(type(number) is int and number >= 1 for number in numbers):
            raise ValueError(
                "SteerableConv needs positive integers `in_fields`, `out_fields`, "
                f"`size`, `stride` and `image_size`, but got {numbers!r}."
            )
        if size > image_size + 2 * padding(size):
            raise ValueError(
                f"Filters of side {size} do not fit on an image of side {image_size}: "
                "take smaller filters, or fewer pools and strides before."
            )
        shorter = size - 2 * padding(size)
        left_over = (image_size - shorter) % stride
        if not isinstance(group, Trivial) and left_over:
            raise ValueError(
                f"Filters of side {size} with a stride of {stride} on an image of side "
                f"{image_size} are not equivariant: take a stride that divides "
                f"{image_size - shorter}, filters of other sides, or a mean pool "
                "(`pool_after`)."
            )
        elements = 1 if lifting else group.order
        taps = size**2 * elements
        check_weights("SteerableConv", "out_fields", taps * in_fields, out_fields)
        spread = (2.0 / (taps * in_fields)) ** 0.5
        self.weight = spread * jr.normal(key, (taps, in_fields, out_fields))
        self.bias = jnp.zeros(out_fields)
        self.group = group
        self.size = size
        self.stride = stride
        self.lifting = lifting
        self.image_size = image_size

    def __call__(self, image: Float[Array, "y x channel"]) -> Float[Array, "v u out"]:
        if image.shape[:2] != (self.image_size, self.image_size):
            raise ValueError(
                f"This layer was made for images of side {self.image_size}, but got "
                f"one of shape {image.shape}."
            )
        patches = extract_patches(image, self.size, self.stride)
        order = self.group.order
        # In full precision on a GPU too: TF32 is not equivariant to 1e-6.
        maps = matmul(patches, self.matrix())
        return maps + jnp.tile(self.bias, order)[None, None]

    def adjoint(self, maps: Float[Array, "v u out"]) -> Float[Array, "y x channel"]:
        r"""Return $A^\top f'$ for maps of the output, with $A$ the part without bias.

        It commutes with the group, and undoes the stride's change of the side.
        """
        elements = 1 if self.lifting else self.group.order
        channels = elements * self.weight.shape[1]
        shape = (self.image_size, self.image_size, channels)
        patches = matmul(maps, self.matrix().T)
        image = jax.ShapeDtypeStruct(shape, patches.dtype)
        extract = lambda image: extract_patches(image, self.size, self.stride)
        return jax.linear_transpose(extract, image)(patches)[0]

    @property
    def output_size(self) -> int:
        """The side of the output."""
        return (self.image_size + 2 * padding(self.size) - self.size) // self.stride + 1

    def matrix(self) -> Float[Array, "row column"]:
        """Return the filters of all elements, for patches as rows."""
        taps = _rotated_taps(self.group.order, self.size, self.lifting)
        filters = jnp.swapaxes(self.weight[taps], 2, 3)  # tap, h, in, g, out
        rows = taps.shape[0] * taps.shape[1] * self.weight.shape[1]
        return filters.reshape(rows, -1)


def extract_patches(
    image: Float[Array, "y x channel"], size: int, stride: int = 1
) -> Float[Array, "v u patch"]:
    """Return the square patches around the pixels, with zeros beyond the edge."""
    height, width, _ = image.shape
    edge = padding(size)
    padded = jnp.pad(image, ((edge, edge), (edge, edge), (0, 0)))
    return jnp.concatenate(
        [
            padded[
                i : height - size + i + 2 * edge + 1 : stride,
                j : width - size + j + 2 * edge + 1 : stride,
            ]
            for i in range(size)
            for j in range(size)
        ],
        axis=-1,
    )


def padding(size: int) -> int:
    """Return the number of zeros added at each side for a filter."""
    return (size - 1) // 2


def mean_pool(maps: Float[Array, "y x channel"]) -> Float[Array, "v u channel"]:
    """Return the means of squares of 2 x 2 pixels."""
    height, width, channels = maps.shape
    squares = maps.reshape(height // 2, 2, width // 2, 2, channels)
    return jnp.mean(squares, axis=(1, 3))


@functools.cache
def _rotated_taps(order: int, size: int, lifting: bool) -> np.ndarray:
    """Return indices into the identity's weights, `(tap, input, output element)`."""
    # The order is 1 without symmetry, 8 with reflections, and else 4.
    inputs = 1 if lifting else order
    first = np.arange(size**2 * inputs).reshape(size, size, inputs)
    # The same type in both precisions, since the result is cached.
    taps = np.empty((size, size, inputs, order), np.int32)
    for g in range(order):
        for h in range(inputs):
            relative = 0 if lifting else _relative(g, h)
            taps[:, :, h, g] = _rotate(first[:, :, relative], g)
    return taps.reshape(size**2, inputs, order)


def _rotate(square: np.ndarray, element: int) -> np.ndarray:
    return np.rot90(square[:, ::-1] if element >= 4 else square, element % 4)


def _relative(g: int, h: int) -> int:
    """Return the element $g^{-1} h$."""
    names = np.arange(9).reshape(3, 3)
    for element in range(8):
        if np.array_equal(_rotate(_rotate(names, element), g), _rotate(names, h)):
            return element
    raise AssertionError("the elements are a group")
