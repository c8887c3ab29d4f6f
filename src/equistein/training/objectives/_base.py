"""The interface of objectives, and their weighted sum."""

import abc
from typing import Any, Generic

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import PyTree

from equistein._gate import gate
from equistein._types import Key, Scalar
from equistein.energies import Energies
from equistein.training._batch import Batch

Info = dict[str, Scalar]
"""Numbers of a batch by name. Over an epoch their mean is kept, leaving out NaN; the
largest of those whose name begins with `largest_`, the sum of `num_`."""


class AbstractObjective(eqx.Module, Generic[Energies]):
    """A loss of an energy and a batch of data, with a state of its own.

    Objectives add and scale: `ContrastiveDivergence(negatives) + 0.1 * CrossEntropy()`.
    """

    @abc.abstractmethod
    def init(self, key: Key, energy: Energies, data: Batch) -> PyTree:
        """Return the state before the first batch.

        Args:
            key: The source of randomness.
            energy: The energy to train.
            data: All of the data, for checks and shapes.

        Raises:
            ValueError: If the energy or the data lacks what the loss needs.
        """

    @abc.abstractmethod
    def loss(
        self, key: Key, energy: Energies, state: PyTree, batch: Batch
    ) -> tuple[Scalar, PyTree, Info]:
        """Return the loss, the next state, and numbers to follow.

        The loss is differentiated in the weights of `energy`; what must not be, such as
        negatives, is made from `es.energies.fixed(energy)`.
        """

    @property
    def uses_labels(self) -> bool:
        """Whether labels make a difference."""
        return False

    @property
    def uses_rows(self) -> bool:
        """Whether row numbers make a difference: all of the data is in memory then."""
        return False

    def __add__(self, other: "AbstractObjective") -> "Sum":
        return Sum((*_terms(self), *_terms(other)))

    def __mul__(self, weight: float) -> "Sum":
        return Sum(tuple((weight * factor, part) for factor, part in _terms(self)))

    def __rmul__(self, weight: float) -> "Sum":
        return self * weight


@gate
class Sum(AbstractObjective[Any]):
    r"""A weighted sum of objectives, $\sum_i w_i L_i$.

    Args:
        terms: Pairs of a weight and an objective.

    Raises:
        ValueError: If a weight is no finite number.
    """

    terms: tuple[tuple[float, AbstractObjective], ...]

    def __init__(self, terms: tuple[tuple[float, AbstractObjective], ...]):
        for weight, part in terms:
            good = isinstance(weight, int | float) and abs(weight) < float("inf")
            if not good or not isinstance(part, AbstractObjective):
                raise ValueError(
                    "Objectives add to each other and are multiplied by finite "
                    f"numbers, but got {weight!r} times {part!r}."
                )
        self.terms = tuple((float(weight), part) for weight, part in terms)

    def init(self, key: Key, energy: Any, data: Batch) -> PyTree:
        keys = jr.split(key, len(self.terms))
        return tuple(
            part.init(key, energy, data)
            for key, (_, part) in zip(keys, self.terms, strict=True)
        )

    def loss(
        self, key: Key, energy: Any, state: PyTree, batch: Batch
    ) -> tuple[Scalar, PyTree, Info]:
        total = jnp.zeros((), batch.points.dtype)
        states, infos = [], {}
        keys = jr.split(key, len(self.terms))
        for key, (weight, part), before in zip(keys, self.terms, state, strict=True):
            value, after, info = part.loss(key, energy, before, batch)
            total += weight * value
            states.append(after)
            both = ", ".join(sorted(set(infos) & set(info)))
            if both:
                raise ValueError(
                    f"Two objectives that are added both report {both}: add one of "
                    "each kind."
                )
            infos |= info
        return total, tuple(states), infos

    @property
    def uses_labels(self) -> bool:
        return any(part.uses_labels for _, part in self.terms)

    @property
    def uses_rows(self) -> bool:
        return any(part.uses_rows for _, part in self.terms)


def _terms(objective: AbstractObjective) -> tuple[tuple[float, AbstractObjective], ...]:
    return objective.terms if isinstance(objective, Sum) else ((1.0, objective),)
