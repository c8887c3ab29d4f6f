"""Permutations and signs of labels, such as mixture components or hidden units."""

import itertools
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int

from equistein._arrays import as_keys
from equistein._gate import gate, keyed
from equistein._limits import check_memory
from equistein._types import AnyKey, Key, Point
from equistein.groups._base import AbstractFiniteGroup
from equistein.groups._labels import Labels


class AbstractLabelGroup(AbstractFiniteGroup):
    """A group that acts on the labels of a point's parts."""

    labels: eqx.AbstractVar[Labels]

    def check_shape(self, shape: tuple[int, ...]) -> None:
        self.labels.check_shape(type(self).__name__, shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.labels.described})"


@gate
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

    Raises:
        ValueError: If `num` is not a positive integer, or `parts` do not fit it.
    """

    labels: Labels

    def __init__(self, num: int, parts: Any = None):
        self.labels = Labels("Permutations", num, parts)

    @property
    def order(self) -> int:
        return math.factorial(self.labels.num)

    def elements(self) -> Int[Array, "order label"]:
        return jnp.asarray(_all_permutations(self.labels.num))

    def sample(self, key: AnyKey, num: int) -> Int[Array, "num label"]:
        return _random_permutations(as_keys(key), num, self.labels.num)

    def act(self, element: Int[Array, " label"], point: Point) -> Point:
        self.check_shape(point.shape)
        return self.labels.permuted(point, element)

    def compose(
        self, left: Int[Array, "*stack label"], right: Int[Array, "*stack label"]
    ) -> Int[Array, "*stack label"]:
        return jnp.take_along_axis(right, left, axis=-1)

    def inverse(
        self, element: Int[Array, "*stack label"]
    ) -> Int[Array, "*stack label"]:
        return jnp.argsort(element, axis=-1)

    def canonicalize(self, point: Point) -> Point:
        self.check_shape(point.shape)
        order = jnp.argsort(self.labels.sort_keys(point))
        return self.labels.permuted(point, order)


@gate
class Signs(AbstractLabelGroup):
    r"""The $2^n$ independent changes of sign of `num` labels.

    Acts on the points of `Permutations`; all coordinates of a label change their sign
    together, $(g x)_i = \pm x_i$. The representative has no negative number in the
    coordinate that `Permutations` sorts by. An element is an array of 1 and -1.

    Args:
        num: The number of labels.
        parts: As for `Permutations`, each part with at most one axis of labels.

    Raises:
        ValueError: If `num` is not a positive integer, or `parts` do not fit it.
    """

    labels: Labels

    def __init__(self, num: int, parts: Any = None):
        self.labels = Labels("Signs", num, parts, most_axes=1)

    @property
    def order(self) -> int:
        return 2**self.labels.num

    def elements(self) -> Float[Array, "order label"]:
        return jnp.asarray(_all_signs(self.labels.num), float)

    @keyed
    def sample(self, key: AnyKey, num: int) -> Float[Array, "num label"]:
        return jr.rademacher(key, (num, self.labels.num), float)

    def act(self, element: Float[Array, " label"], point: Point) -> Point:
        self.check_shape(point.shape)
        return self.labels.scaled(point, element)

    def compose(
        self, left: Float[Array, "*stack label"], right: Float[Array, "*stack label"]
    ) -> Float[Array, "*stack label"]:
        return left * right

    def inverse(
        self, element: Float[Array, "*stack label"]
    ) -> Float[Array, "*stack label"]:
        return element

    def canonicalize(self, point: Point) -> Point:
        self.check_shape(point.shape)
        keys = self.labels.sort_keys(point)
        return self.labels.scaled(point, jnp.where(keys < 0, -1.0, 1.0))


class SignedPermutation(eqx.Module):
    """An element of `SignedPermutations`: reorder the labels, then change signs."""

    signs: Float[Array, "*stack label"]
    permutation: Int[Array, "*stack label"]


@gate
class SignedPermutations(AbstractLabelGroup):
    r"""The $2^n n!$ orders of `num` labels with changes of their signs.

    Acts on the points of `Permutations`, $(g x)_i = \pm x_{g(i)}$: the hyperoctahedral
    group, as of a layer of hidden units with an odd activation such as tanh. The
    representative is that of `Permutations`, after that of `Signs`.

    Args:
        num: The number of labels.
        parts: As for `Permutations`, each part with at most one axis of labels.

    Raises:
        ValueError: If `num` is not a positive integer, or `parts` do not fit it.
    """

    labels: Labels

    def __init__(self, num: int, parts: Any = None):
        self.labels = Labels("SignedPermutations", num, parts, most_axes=1)

    @property
    def order(self) -> int:
        return 2**self.labels.num * math.factorial(self.labels.num)

    def elements(self) -> SignedPermutation:
        signs, orders = _all_signs(self.labels.num), _all_permutations(self.labels.num)
        return SignedPermutation(
            jnp.tile(jnp.asarray(signs, float), (len(orders), 1)),
            jnp.repeat(jnp.asarray(orders), len(signs), axis=0),
        )

    @keyed
    def sample(self, key: AnyKey, num: int) -> SignedPermutation:
        sign_key, order_key = jr.split(key)
        return SignedPermutation(
            jr.rademacher(sign_key, (num, self.labels.num), float),
            _random_permutations(order_key, num, self.labels.num),
        )

    def act(self, element: SignedPermutation, point: Point) -> Point:
        self.check_shape(point.shape)
        moved = self.labels.permuted(point, element.permutation)
        return self.labels.scaled(moved, element.signs)

    def compose(
        self, left: SignedPermutation, right: SignedPermutation
    ) -> SignedPermutation:
        take = lambda leaf: jnp.take_along_axis(leaf, left.permutation, axis=-1)
        return SignedPermutation(
            left.signs * take(right.signs), take(right.permutation)
        )

    def inverse(self, element: SignedPermutation) -> SignedPermutation:
        back = jnp.argsort(element.permutation, axis=-1)
        signs = jnp.take_along_axis(element.signs, back, axis=-1)
        return SignedPermutation(signs, back)

    def canonicalize(self, point: Point) -> Point:
        self.check_shape(point.shape)
        keys = self.labels.sort_keys(point)
        point = self.labels.scaled(point, jnp.where(keys < 0, -1.0, 1.0))
        return self.labels.permuted(point, jnp.argsort(jnp.abs(keys)))


def _all_permutations(num: int) -> Int[np.ndarray, "order label"]:
    """Return all permutations of the labels, the identity first."""
    needed = math.factorial(num) * (64 + 16 * num)
    check_memory(f"All orders of {num} labels", needed, "draw some")
    return np.array(list(itertools.permutations(range(num))))


def _random_permutations(
    key: Key, num: int, num_labels: int
) -> Int[Array, "num label"]:
    shuffle = lambda key: jr.permutation(key, num_labels)
    return jax.vmap(shuffle)(jr.split(key, num))


def _all_signs(num: int) -> np.ndarray:
    check_memory(f"All signs of {num} labels", 2**num * (64 + 16 * num), "draw some")
    return np.array(list(itertools.product((1, -1), repeat=num)))
