"""The swaps of labels: of mixture components, hidden units, overlapping signals."""

import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Int

from equistein._arrays import as_keys
from equistein._gate import gate
from equistein._limits import check_made
from equistein._types import AnyKey, Key, Point
from equistein.groups._base import AbstractFiniteGroup
from equistein.groups._labels import Labels


@gate
class Permutations(AbstractFiniteGroup):
    r"""All $n!$ orders of `num` labels.

    Acts on points whose leading axis has the labels, or is a multiple of their number:
    then in equal blocks, $(g x)_i = x_{g(i)}$. With `parts`, on a flat point that holds
    several arrays, whose labels are swapped together: a mixture of three components
    with means, log scales and a common number is
    `Permutations(3, parts=(((3,), (0,)), ((3,), (0,)), ((1,), ())))`, and both axes of
    the transition matrix of a hidden Markov model are `((3, 3), (0, 1))`.

    The representative lists the labels by their first coordinate, in the first part
    that has labels, those of one axis before those of two, where by the sum of a row.
    It jumps where two are equal.

    An element is an array of numbers: what stands at label i stood at `element[i]`.

    Args:
        num: The number of labels.
        parts: For a flat point, the shape of each array it holds and the axes of its
            labels, none for what belongs to no label.

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
        return jnp.asarray(all_permutations(self.labels.num))

    def sample(self, key: AnyKey, num: int) -> Int[Array, "num label"]:
        return random_permutations(as_keys(key), num, self.labels.num)

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

    def check_shape(self, shape: tuple[int, ...]) -> None:
        self.labels.check_shape("Permutations", shape)

    def __repr__(self) -> str:
        return f"Permutations({self.labels.described})"


def all_permutations(num: int) -> Int[np.ndarray, "order label"]:
    """Return all orders of the labels, the identity first."""
    needed = math.factorial(num) * (64 + 16 * num)
    check_made(f"All orders of {num} labels", needed, "draw some")
    return np.array(list(itertools.permutations(range(num))))


def random_permutations(key: Key, num: int, num_labels: int) -> Int[Array, "num label"]:
    """Draw orders of the labels, each as likely as another."""
    shuffle = lambda key: jr.permutation(key, num_labels)
    return jax.vmap(shuffle)(jr.split(key, num))
