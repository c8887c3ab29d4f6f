"""Changes of sign, label by label."""

import itertools
from typing import Any

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein._gate import gate, keyed
from equistein._limits import check_made
from equistein._types import AnyKey, Point
from equistein.groups._base import AbstractFiniteGroup
from equistein.groups._labels import Labels


@gate
class Signs(AbstractFiniteGroup):
    r"""The $2^n$ changes of sign of `num` labels, each for itself.

    Acts on the points that `Permutations` acts on; all coordinates of a label change
    their sign together, $(g x)_i = \pm x_i$. `Signs(1)` is $x \to -x$. The
    representative has no negative number in the coordinate that `Permutations` sorts
    by. An element is an array of 1 and -1, one for each label.

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
        return jnp.asarray(all_signs(self.labels.num), float)

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

    def check_shape(self, shape: tuple[int, ...]) -> None:
        self.labels.check_shape("Signs", shape)

    def __repr__(self) -> str:
        return f"Signs({self.labels.described})"


def all_signs(num: int) -> np.ndarray:
    """Return all signs of the labels, those that change none first."""
    check_made(f"All signs of {num} labels", 2**num * (64 + 16 * num), "draw some")
    return np.array(list(itertools.product((1, -1), repeat=num)))
