"""What products of groups share: an element is one of each."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import PyTree

from equistein._gate import keyed
from equistein._limits import check_made
from equistein._types import AnyKey
from equistein.groups._base import AbstractGroup

_BYTES = 64  # of a tuple of elements, at least, while all are made


class AbstractCombined(AbstractGroup):
    """A product of groups, whose elements are tuples with one of each."""

    groups: eqx.AbstractVar[tuple[AbstractGroup, ...]]

    def compose(self, left: PyTree, right: PyTree) -> PyTree:
        triples = zip(self.groups, left, right, strict=True)
        return tuple(group.compose(g, h) for group, g, h in triples)

    def inverse(self, element: PyTree) -> PyTree:
        pairs = zip(self.groups, element, strict=True)
        return tuple(group.inverse(g) for group, g in pairs)

    @keyed
    def sample(self, key: AnyKey, num: int) -> PyTree:
        keys = jr.split(key, len(self.groups))
        pairs = zip(self.groups, keys, strict=True)
        return tuple(group.sample(k, num) for group, k in pairs)

    @property
    def order(self) -> int | None:
        """The number of tuples, None where there is no end of them."""
        orders = [group.order for group in self.groups if group.order is not None]
        return math.prod(orders) if len(orders) == len(self.groups) else None

    def elements(self) -> PyTree:
        return all_tuples(self.groups)


def all_tuples(groups: tuple[AbstractGroup, ...]) -> PyTree:
    """Return all tuples of elements of finite groups, stacked on axis 0."""
    orders = [len(jax.tree.leaves(group.elements())[0]) for group in groups]
    num = math.prod(orders)
    check_made(f"The {num} elements of the product", _BYTES * num)
    places = jnp.unravel_index(jnp.arange(num), orders)
    return tuple(
        jax.tree.map(lambda leaf, place=place: leaf[place], group.elements())
        for group, place in zip(groups, places, strict=True)
    )


def check_groups(name: str, groups: tuple[AbstractGroup, ...]) -> None:
    """Raise `ValueError` unless there is at least one, and all are groups."""
    wrong = [group for group in groups if not isinstance(group, AbstractGroup)]
    if wrong or not groups:
        got = f"{wrong[0]!r}" if wrong else "none"
        raise ValueError(
            f"{name} needs groups, such as Permutations(3), but got {got}."
        )
