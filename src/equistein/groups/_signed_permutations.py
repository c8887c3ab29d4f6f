"""Swaps of labels with changes of sign: of the hidden units of an odd activation."""

import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Int

from equistein._gate import gate, keyed
from equistein._types import AnyKey, Point
from equistein.groups._base import AbstractFiniteGroup
from equistein.groups._labels import Labels
from equistein.groups._permutations import all_permutations, random_permutations
from equistein.groups._signs import all_signs


class SignedPermutation(eqx.Module):
    """An element of `SignedPermutations`: reorder the labels, then change signs."""

    signs: Float[Array, "*stack label"]
    permutation: Int[Array, "*stack label"]


@gate
class SignedPermutations(AbstractFiniteGroup):
    r"""The $2^n n!$ orders of `num` labels with changes of their signs.

    Acts on the points that `Permutations` acts on, $(g x)_i = \pm x_{g(i)}$: the
    hyperoctahedral group, the product of `Signs` and `Permutations`, which do not
    commute. A layer of n hidden units with an odd activation such as tanh has it. The
    representative is that of `Permutations`, with the signs of `Signs` taken before.

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
        signs, orders = all_signs(self.labels.num), all_permutations(self.labels.num)
        return SignedPermutation(
            jnp.tile(jnp.asarray(signs, float), (len(orders), 1)),
            jnp.repeat(jnp.asarray(orders), len(signs), axis=0),
        )

    @keyed
    def sample(self, key: AnyKey, num: int) -> SignedPermutation:
        sign_key, order_key = jr.split(key)
        return SignedPermutation(
            jr.rademacher(sign_key, (num, self.labels.num), float),
            random_permutations(order_key, num, self.labels.num),
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

    def check_shape(self, shape: tuple[int, ...]) -> None:
        self.labels.check_shape("SignedPermutations", shape)

    def __repr__(self) -> str:
        return f"SignedPermutations({self.labels.described})"
