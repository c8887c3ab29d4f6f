"""The interface of starts."""

import abc

import equinox as eqx
from jaxtyping import Array, Float

from equistein._types import Key, Particles, Scalar
from equistein.groups import AbstractGroup


class AbstractInitial(eqx.Module):
    """A distribution that particles start from, on the group's subspace.

    Attributes:
        center: Its middle.
        reach: The largest coordinate of the data, seen from there.
        group: The symmetry.
    """

    center: eqx.AbstractVar[Float[Array, "..."]]
    reach: eqx.AbstractVar[Scalar]
    group: eqx.AbstractVar[AbstractGroup]

    @abc.abstractmethod
    def sample(self, key: Key, num: int, label: int | None = None) -> Particles:
        """Draw `num` points; of one class, if there are classes."""
