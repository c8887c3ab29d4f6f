"""The coordinates of exchangeable labels in a point."""

import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from equistein._numbers import check_integers
from equistein._types import Point

Part = tuple[tuple[int, ...], tuple[int, ...]]
"""A shape, and the axes of its labels."""


class Labels(eqx.Module):
    r"""The coordinates of `num` exchangeable labels in a point.

    Without `parts`, equal blocks of the leading axis. With `parts`, those of arrays in
    a flat point along the named axes: `(((3,), (0,)), ((3, 3), (0, 1)), ((2,), ()))` is
    a vector with a number for each label, a matrix whose rows and columns both are
    labels, and two numbers without a label.
    """

    num: int
    parts: tuple[Part, ...] | None

    def __init__(self, name: str, num: int, parts: Any = None, *, most_axes: int = 2):
        check_integers(name, num=num)
        self.num = num
        self.parts = None if parts is None else tuple(map(_as_part, parts))
        for shape, axes in self.parts or ():
            if any(not 0 <= axis < len(shape) or shape[axis] != num for axis in axes):
                raise ValueError(
                    f"{name} with `num` {num} needs `parts` that are as long along "
                    f"their axes, but got the shape {shape} with the axes {axes}."
                )
            if len(set(axes)) < len(axes) or len(axes) > most_axes:
                raise ValueError(
                    f"{name} needs `parts` with at most {most_axes} different axes of "
                    f"labels, but got the axes {axes}."
                )
        if self.parts is not None and not any(axes for _, axes in self.parts):
            raise ValueError(
                f"{name} needs `parts` of which one has an axis of labels."
            )

    @property
    def size(self) -> int | None:
        """The number of coordinates of a flat point; None for blocks of any size."""
        if self.parts is None:
            return None
        return sum(math.prod(shape) for shape, _ in self.parts)

    @property
    def described(self) -> str:
        """The arguments that make a group of these labels."""
        return f"{self.num}" + ("" if self.parts is None else f", parts={self.parts}")

    def check_shape(self, name: str, shape: tuple[int, ...]) -> None:
        """Raise `ValueError` unless points of this shape hold the labels."""
        if self.parts is not None:
            good, wanted = shape == (self.size,), f"({self.size},), as its `parts` say"
        else:
            good = len(shape) > 0 and shape[0] % self.num == 0 and shape[0] > 0
            wanted = f"(n, ...) with n a multiple of {self.num}"
        if not good:
            raise ValueError(
                f"{name} of {self.num} labels acts on points of shape {wanted}, but "
                f"got points of shape {shape}. Put the labels on the leading axis, or "
                "give `parts`."
            )

    def permuted(self, point: Point, permutation: Int[Array, " label"]) -> Point:
        """Return the point whose label i holds what `permutation[i]` held."""
        if self.parts is None:
            blocks = point.reshape(self.num, -1)
            return blocks[permutation].reshape(point.shape)
        moved = []
        for array, (_, axes) in self._arrays(point):
            for axis in axes:
                array = jnp.take(array, permutation, axis=axis)
            moved.append(array.ravel())
        return jnp.concatenate(moved)

    def scaled(self, point: Point, factors: Float[Array, " label"]) -> Point:
        """Return the point with each label's coordinates times a factor."""
        factors = jnp.asarray(factors, point.dtype)
        if self.parts is None:
            blocks = point.reshape(self.num, -1)
            return (blocks * factors[:, None]).reshape(point.shape)
        moved = []
        for array, (shape, axes) in self._arrays(point):
            for axis in axes:
                array = array * factors.reshape(_along(axis, len(shape)))
            moved.append(array.ravel())
        return jnp.concatenate(moved)

    def sort_keys(self, point: Point) -> Float[Array, " label"]:
        """Return a coordinate of each label that representatives are sorted by."""
        if self.parts is None:
            return point.reshape(self.num, -1)[:, 0]
        first = [(a, axes) for a, (_, axes) in self._arrays(point) if axes]
        array, (axis, *others) = min(first, key=lambda pair: len(pair[1]))
        by_label = jnp.moveaxis(array, axis, 0).reshape(self.num, -1)
        # Where rows and columns both are labels, a row's sum does not depend on order.
        return jnp.sum(by_label, axis=1) if others else by_label[:, 0]

    @property
    def are_separate(self) -> bool:
        """Whether no coordinate belongs to two labels."""
        return all(len(axes) < 2 for _, axes in self.parts or ())

    def blocks(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the indices of separate labels, (label, width), and of the rest."""
        if self.parts is None:
            return np.arange(size).reshape(self.num, -1), np.arange(0)
        labelled, rest, start = [], [np.arange(0)], 0
        for shape, axes in self.parts:
            places = start + np.arange(math.prod(shape)).reshape(shape)
            start += math.prod(shape)
            if axes:
                labelled.append(np.moveaxis(places, axes[0], 0).reshape(self.num, -1))
            else:
                rest.append(places.ravel())
        return np.concatenate(labelled, axis=1), np.concatenate(rest)

    def _arrays(self, point: Point) -> list[tuple[Array, Part]]:
        """Return the arrays that a flat point holds, with their parts."""
        parts = self.parts or ()
        sizes = [math.prod(shape) for shape, _ in parts]
        pieces = jnp.split(point, np.cumsum(sizes)[:-1])
        return [
            (p.reshape(part[0]), part) for p, part in zip(pieces, parts, strict=True)
        ]


def _as_part(part: Any) -> Part:
    try:
        shape, axes = part
        return tuple(int(n) for n in shape), tuple(int(axis) for axis in axes)
    except (TypeError, ValueError):
        raise ValueError(
            "`parts` needs pairs of a shape and the axes of its labels, such as "
            f"((3, 2), (0,)), but got {part!r}."
        ) from None


def _along(axis: int, ndim: int) -> tuple[int, ...]:
    return tuple(-1 if i == axis else 1 for i in range(ndim))
