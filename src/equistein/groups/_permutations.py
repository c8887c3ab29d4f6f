"""Permutations and signs of labels, such as mixture components or hidden units."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int

from equistein._check_arguments import accept_integer_key, check_arguments
from equistein._limits import check_memory
from equistein._numbers import check_integers
from equistein._types import AnyKey, Point
from equistein.groups._base import AbstractFiniteGroup

Part = tuple[tuple[int, ...], tuple[int, ...]]
"""A shape, and the axes of its labels."""

Order = Int[Array, "*stack label"]
Factors = Float[Array, "*stack label"]


class Labels(eqx.Module):
    r"""The coordinates of `num` exchangeable labels in a point.

    Without `parts`, equal blocks of the leading axis. With `parts`, those of arrays in
    a flat point along the named axes: `(((3,), (0,)), ((3, 3), (0, 1)), ((2,), ()))` is
    a vector with a number for each label, a matrix whose rows and columns both are
    labels, and two numbers without a label.
    """

    num: int
    parts: tuple[Part, ...] | None

    def __init__(self, name: str, num: int, parts: Any, most_axes: int):
        check_integers(name, num=num)
        self.num = num
        self.parts = None if parts is None else tuple(map(_as_part, parts))
        for shape, axes in self.parts or ():
            fits = all(0 <= axis < len(shape) and shape[axis] == num for axis in axes)
            if not fits or len(set(axes)) < len(axes) or len(axes) > most_axes:
                raise ValueError(
                    f"{name} with `num` {num} needs `parts` that are as long along at "
                    f"most {most_axes} different axes of labels, but got the shape "
                    f"{shape} with the axes {axes}."
                )
        if self.parts is not None and not any(axes for _, axes in self.parts):
            raise ValueError(f"{name} needs `parts`, one with an axis of labels.")

    def permute_labels(self, point: Point, permutation: Int[Array, " label"]) -> Point:
        """Return the point whose label i holds what `permutation[i]` held."""
        take = lambda array, axis: jnp.take(array, permutation, axis, mode="clip")
        return self._change(take, point)

    def scale_labels(self, point: Point, factors: Float[Array, " label"]) -> Point:
        """Return the point with each label's coordinates times a factor."""
        factors = jnp.asarray(factors, point.dtype)

        def scale(array, axis):
            others = [i for i in range(array.ndim) if i != axis]
            return array * jnp.expand_dims(factors, others)

        return self._change(scale, point)

    def sort(self, point: Point) -> Point:
        """Return the point with its labels in the order of their keys."""
        return self.permute_labels(point, jnp.argsort(self._keys(point)))

    def make_positive(self, point: Point) -> Point:
        """Return the point with the sign of each label at which its key is positive."""
        return self.scale_labels(point, jnp.where(self._keys(point) < 0, -1.0, 1.0))

    def _keys(self, point: Point) -> Float[Array, " label"]:
        """Return a coordinate of each label that representatives are sorted by."""
        first = [(a, axes) for a, axes in self._arrays(point) if axes]
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
        labelled, rest = [], [np.arange(0)]
        for places, axes in self._arrays(np.arange(size)):
            if axes:
                labelled.append(np.moveaxis(places, axes[0], 0).reshape(self.num, -1))
            else:
                rest.append(places.ravel())
        return np.concatenate(labelled, axis=1), np.concatenate(rest)

    def _change(self, change: Callable[[Array, int], Array], point: Point) -> Point:
        """Return the point after a change of its arrays along each axis of labels."""
        moved = []
        for array, axes in self._arrays(point):
            for axis in axes:
                array = change(array, axis)
            moved.append(array.ravel())
        return jnp.concatenate(moved).reshape(point.shape)

    def _arrays(self, point: Any) -> list[tuple[Any, tuple[int, ...]]]:
        """Return the arrays that a point holds, with their axes of labels."""
        if self.parts is None:
            return [(point.reshape(self.num, -1), (0,))]
        ends = np.cumsum([math.prod(shape) for shape, _ in self.parts])[:-1].tolist()
        split = np.split if isinstance(point, np.ndarray) else jnp.split
        pairs = zip(split(point, ends), self.parts, strict=True)
        return [(piece.reshape(shape), axes) for piece, (shape, axes) in pairs]


class AbstractLabelGroup(AbstractFiniteGroup):
    """A group that acts on the labels of a point's parts."""

    labels: Labels

    def check_shape(self, shape: tuple[int, ...]) -> None:
        name, num, parts = type(self).__name__, self.labels.num, self.labels.parts
        if parts is not None:
            size = sum(math.prod(shape) for shape, _ in parts)
            good, wanted = shape == (size,), f"({size},), as its `parts` say"
        else:
            good = len(shape) > 0 and shape[0] % num == 0 and shape[0] > 0
            wanted = f"(n, ...) with n a multiple of {num}"
        if not good:
            raise ValueError(
                f"{name} of {num} labels acts on points of shape {wanted}, but got "
                f"points of shape {shape}. Put the labels on the leading axis, or give "
                "`parts`."
            )

    def __repr__(self) -> str:
        num, parts = self.labels.num, self.labels.parts
        more = "" if parts is None else f", parts={parts}"
        return f"{type(self).__name__}({num}{more})"


@check_arguments
class Permutations(AbstractLabelGroup):
    r"""All $n!$ orders of `num` labels.

    Acts on points whose leading axis has the labels, in equal blocks if it is a
    multiple of their number, $(g x)_i = x_{g(i)}$. With `parts`, on a flat point of
    several arrays, whose labels are permuted together: a mixture of three components
    with means, log scales and a common number is
    `Permutations(3, parts=(((3,), (0,)), ((3,), (0,)), ((1,), ())))`, and both axes of
    the transition matrix of a hidden Markov model are `((3, 3), (0, 1))`.

    The representative sorts the labels by the first coordinate of the first part with
    one axis of labels, or by the sum of a row if there is none. It jumps where two are
    equal. An element is an array of indices: label i has what label `element[i]` had.

    Args:
        num: The number of labels.
        parts: For a flat point, the shape of each of its arrays and the axes of its
            labels, () for none.
    """

    def __init__(self, num: int, parts: Any = None):
        self.labels = Labels("Permutations", num, parts, 2)

    @property
    def order(self) -> int:
        return math.factorial(self.labels.num)

    def elements(self) -> Int[Array, "order label"]:
        return jnp.asarray(_all_permutations(self.labels.num))

    @accept_integer_key
    def sample(self, key: AnyKey, num: int) -> Int[Array, "num label"]:
        return _shuffles(key, num, self.labels.num)

    def act(self, element: Int[Array, " label"], point: Point) -> Point:
        self.check_shape(point.shape)
        return self.labels.permute_labels(point, element)

    def compose(self, left: Order, right: Order) -> Order:
        return jnp.take_along_axis(right, left, axis=-1)

    def inverse(self, element: Order) -> Order:
        return jnp.argsort(element, axis=-1)

    def canonicalize(self, point: Point) -> Point:
        self.check_shape(point.shape)
        return self.labels.sort(point)


@check_arguments
class Signs(AbstractLabelGroup):
    r"""The $2^n$ independent changes of sign of `num` labels.

    Acts on the points of `Permutations`, whose arguments it takes, with at most one
    axis of labels in a part; all coordinates of a label change their sign together,
    $(g x)_i = \pm x_i$. The representative has no negative number in the coordinate
    that `Permutations` sorts by. An element is an array of 1 and -1.
    """

    def __init__(self, num: int, parts: Any = None):
        self.labels = Labels("Signs", num, parts, 1)

    @property
    def order(self) -> int:
        return 2**self.labels.num

    def elements(self) -> Float[Array, "order label"]:
        return jnp.asarray(_all_signs(self.labels.num), float)

    @accept_integer_key
    def sample(self, key: AnyKey, num: int) -> Float[Array, "num label"]:
        return jr.rademacher(key, (num, self.labels.num), float)

    def act(self, element: Float[Array, " label"], point: Point) -> Point:
        self.check_shape(point.shape)
        return self.labels.scale_labels(point, element)

    def compose(self, left: Factors, right: Factors) -> Factors:
        return left * right

    def inverse(self, element: Factors) -> Factors:
        return element

    def canonicalize(self, point: Point) -> Point:
        self.check_shape(point.shape)
        return self.labels.make_positive(point)


class SignedPermutation(eqx.Module):
    """An element of `SignedPermutations`: reorder the labels, then change signs."""

    signs: Factors
    permutation: Order


@check_arguments
class SignedPermutations(AbstractLabelGroup):
    r"""The $2^n n!$ orders of `num` labels with changes of their signs.

    Acts on the points of `Signs`, $(g x)_i = \pm x_{g(i)}$: the hyperoctahedral group,
    as of a layer of hidden units with an odd activation such as tanh. The
    representative is that of `Permutations`, after that of `Signs`.
    """

    def __init__(self, num: int, parts: Any = None):
        self.labels = Labels("SignedPermutations", num, parts, 1)

    @property
    def order(self) -> int:
        return 2**self.labels.num * math.factorial(self.labels.num)

    def elements(self) -> SignedPermutation:
        signs, orders = _all_signs(self.labels.num), _all_permutations(self.labels.num)
        tiled = jnp.tile(jnp.asarray(signs, float), (len(orders), 1))
        return SignedPermutation(tiled, jnp.repeat(orders, len(signs), axis=0))

    @accept_integer_key
    def sample(self, key: AnyKey, num: int) -> SignedPermutation:
        sign_key, order_key = jr.split(key)
        signs = jr.rademacher(sign_key, (num, self.labels.num), float)
        return SignedPermutation(signs, _shuffles(order_key, num, self.labels.num))

    def act(self, element: SignedPermutation, point: Point) -> Point:
        self.check_shape(point.shape)
        moved = self.labels.permute_labels(point, element.permutation)
        return self.labels.scale_labels(moved, element.signs)

    def compose(
        self, left: SignedPermutation, right: SignedPermutation
    ) -> SignedPermutation:
        take = lambda leaf: jnp.take_along_axis(leaf, left.permutation, axis=-1)
        signs = left.signs * take(right.signs)
        return SignedPermutation(signs, take(right.permutation))

    def inverse(self, element: SignedPermutation) -> SignedPermutation:
        back = jnp.argsort(element.permutation, axis=-1)
        signs = jnp.take_along_axis(element.signs, back, axis=-1)
        return SignedPermutation(signs, back)

    def canonicalize(self, point: Point) -> Point:
        self.check_shape(point.shape)
        return self.labels.sort(self.labels.make_positive(point))


def _all_permutations(num: int) -> Int[np.ndarray, "order label"]:
    """Return all permutations of the labels, the identity first."""
    needed = math.factorial(num) * (64 + 16 * num)
    check_memory(f"All orders of {num} labels", needed, "draw some")
    return np.array(list(itertools.permutations(range(num))))


def _shuffles(key: AnyKey, num: int, size: int) -> Int[Array, "num label"]:
    return jax.vmap(lambda key: jr.permutation(key, size))(jr.split(key, num))


def _all_signs(num: int) -> np.ndarray:
    check_memory(f"All signs of {num} labels", 2**num * (64 + 16 * num), "draw some")
    return np.array(list(itertools.product((1, -1), repeat=num)))


def _as_part(part: Any) -> Part:
    try:
        shape, axes = part
        return tuple(int(n) for n in shape), tuple(int(axis) for axis in axes)
    except (TypeError, ValueError):
        raise ValueError(
            "`parts` needs pairs of a shape and the axes of its labels, such as "
            f"((3, 2), (0,)), but got {part!r}."
        ) from None
