"""What is minimized: losses that add, scale, and blur the data."""

import abc
from typing import Any, Generic

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from equistein._check_arguments import check_arguments
from equistein._numbers import check_positive
from equistein._types import Key, Scalar
from equistein.energies import Energy
from equistein.training._data import Batch

Loss = tuple[Scalar, Any, dict[str, Scalar]]
"""The loss of a batch, the next state, and numbers by name. The history has their mean
over an epoch, without NaN; the maximum of `largest_...`, and the sum of `num_...`."""


class AbstractObjective(eqx.Module, Generic[Energy]):
    """A loss of an energy and a batch of data, with a state of its own.

    Objectives add and scale: `ContrastiveDivergence(negatives) + 0.1 * CrossEntropy()`.
    """

    @abc.abstractmethod
    def init(self, key: Key, energy: Energy, data: Batch) -> Any:
        """Return the state before the first batch, or raise `ValueError`.

        The data are all if they are in memory, else the source's preview.
        """

    @abc.abstractmethod
    def loss(self, key: Key, energy: Energy, state: Any, batch: Batch) -> Loss:
        """Return the loss, the next state, and numbers to log.

        The loss is differentiated in the weights of `energy`; what must not be, such as
        negatives, is made from `es.energies.freeze(energy)`.
        """

    @property
    def parts(self) -> "tuple[AbstractObjective, ...]":
        """The objectives that this one is made of."""
        return ()

    @property
    def uses_labels(self) -> bool:
        """Whether labels make a difference."""
        return any(part.uses_labels for part in self.parts)

    @property
    def uses_rows(self) -> bool:
        """Whether it uses the indices of points, which requires all data in memory."""
        return any(part.uses_rows for part in self.parts)

    def __add__(self, other: "AbstractObjective") -> "Sum":
        return Sum((*_terms(self), *_terms(other)))

    def __mul__(self, weight: float) -> "Sum":
        return Sum(tuple((weight * factor, part) for factor, part in _terms(self)))

    def __rmul__(self, weight: float) -> "Sum":
        return self * weight


@check_arguments
class Sum(AbstractObjective[Any]):
    r"""A weighted sum of objectives, $\sum_i w_i L_i$.

    Args:
        terms: Pairs of a finite weight and an objective.
    """

    terms: tuple[tuple[float, AbstractObjective], ...]

    def __init__(self, terms: tuple[tuple[float, AbstractObjective], ...]):
        for weight, part in terms:
            if not abs(weight) < float("inf"):
                raise ValueError(
                    "Sum needs `terms` with finite weights, but got "
                    f"{weight!r} times {part!r}."
                )
        self.terms = tuple((float(weight), part) for weight, part in terms)

    def init(self, key: Key, energy: Any, data: Batch) -> Any:
        keys = jr.split(key, len(self.parts))
        pairs = zip(keys, self.parts, strict=True)
        return tuple(part.init(key, energy, data) for key, part in pairs)

    def loss(self, key: Key, energy: Any, state: Any, batch: Batch) -> Loss:
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
    def parts(self) -> tuple[AbstractObjective, ...]:
        return tuple(part for _, part in self.terms)


def _terms(objective: AbstractObjective) -> tuple[tuple[float, AbstractObjective], ...]:
    return objective.terms if isinstance(objective, Sum) else ((1.0, objective),)


@check_arguments
class Blurred(AbstractObjective[Any]):
    r"""Another objective on $x + \sigma \xi$, with new normal $\xi$ in each batch.

    The noise stays on the subspace of the energy's group. The energy then learns the
    data blurred by $\sigma$, which keeps it from narrowing onto single points.

    Args:
        objective: The objective.
        noise: The noise $\sigma > 0$, in the units of the points.

    References:
        Grathwohl et al. (2020), Your classifier is secretly an energy based model,
        appendix A.
    """

    objective: AbstractObjective
    noise: float = eqx.field(converter=float)

    def __check_init__(self):
        check_positive("Blurred", noise=self.noise)

    def init(self, key: Key, energy: Any, data: Batch) -> Any:
        return self.objective.init(key, energy, data)

    def loss(self, key: Key, energy: Any, state: Any, batch: Batch) -> Loss:
        noise_key, key = jr.split(key)
        points = batch.points
        project = energy.group(points.shape[1:]).project
        noise = jr.normal(noise_key, points.shape, points.dtype)
        blurred = points + self.noise * jax.vmap(project)(noise)
        return self.objective.loss(key, energy, state, batch.with_points(blurred))

    @property
    def parts(self) -> tuple[AbstractObjective, ...]:
        return (self.objective,)
