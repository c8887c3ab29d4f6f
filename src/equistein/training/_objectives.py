"""What is minimized: losses that add, scale, follow each other, and blur the data."""

import abc
import functools
from collections.abc import Iterable, Sequence
from typing import Any, Generic

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from equistein._gate import gate
from equistein._numbers import check_integers, check_positive
from equistein._types import Key, Scalar
from equistein.energies import Energies
from equistein.training._batch import Batch

Loss = tuple[Scalar, Any, dict[str, Scalar]]
"""The loss of a batch, the next state, and numbers by name. The history has their mean
over an epoch (without NaN), of `largest_...` the maximum, of `num_...` the sum."""


class AbstractObjective(eqx.Module, Generic[Energies]):
    """A loss of an energy and a batch of data, with a state of its own.

    Objectives add and scale: `ContrastiveDivergence(negatives) + 0.1 * CrossEntropy()`.
    """

    @abc.abstractmethod
    def init(self, key: Key, energy: Energies, data: Batch) -> Any:
        """Return the state before the first batch.

        Args:
            key: The source of randomness.
            energy: The energy to train.
            data: All data in memory, or the preview of another source.

        Raises:
            ValueError: If the energy or the data lacks what the loss needs.
        """

    @abc.abstractmethod
    def loss(self, key: Key, energy: Energies, state: Any, batch: Batch) -> Loss:
        """Return the loss, the next state, and numbers to log.

        The loss is differentiated in the weights of `energy`; what must not be, such as
        negatives, is made from `es.energies.fixed(energy)`.
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
        """Whether it uses the indices of points, for which all are in memory."""
        return any(part.uses_rows for part in self.parts)

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
            if not abs(weight) < float("inf"):
                raise ValueError(
                    "Sum needs `terms` with finite weights, but got "
                    f"{weight!r} times {part!r}."
                )
        self.terms = tuple((float(weight), part) for weight, part in terms)

    def init(self, key: Key, energy: Any, data: Batch) -> Any:
        return _init_all(self.parts, key, energy, data)

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


def _init_all(
    parts: tuple[AbstractObjective, ...], key: Key, energy: Any, data: Batch
) -> tuple:
    keys = jr.split(key, len(parts))
    pairs = zip(keys, parts, strict=True)
    return tuple(part.init(key, energy, data) for key, part in pairs)


def _terms(objective: AbstractObjective) -> tuple[tuple[float, AbstractObjective], ...]:
    return objective.terms if isinstance(objective, Sum) else ((1.0, objective),)


@gate
class Blurred(AbstractObjective[Any]):
    r"""Another objective on $x + \sigma \xi$, with new normal $\xi$ in each batch.

    The noise stays on the subspace of the energy's group. The energy then learns the
    data blurred by $\sigma$, which keeps it from narrowing onto single points.

    Args:
        objective: The objective.
        noise: The noise $\sigma > 0$, in the units of the points.

    Raises:
        ValueError: If the noise is not positive.

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


@gate
class Phases(AbstractObjective[Any]):
    """Objectives one after another, each for some batches.

    Such as a phase without chains and a contrastive one after it:
    `Phases([(4_000, matching), (500, matching + ContrastiveDivergence(negatives))])`.
    The last phase continues to the end of the fit. Numbers that a phase does not report
    are NaN in its batches.

    Args:
        phases: Pairs of a number of batches and an objective.

    Raises:
        ValueError: If there is no phase, or a part of one is missing.

    References:
        Balcerak et al. (2025), Energy matching: unifying flow matching and energy-based
        models for generative modeling.
    """

    phases: tuple[tuple[int, AbstractObjective], ...]

    def __init__(self, phases: Sequence[tuple[int, AbstractObjective]]):
        if not phases:
            raise ValueError("Phases needs `phases`, at least one, but got none.")
        for num, _ in phases:
            check_integers("Phases", phases=num)
        self.phases = tuple((int(num), objective) for num, objective in phases)

    def init(self, key: Key, energy: Any, data: Batch) -> Any:
        states = _init_all(self.parts, key, energy, data)
        return jnp.zeros((), int), states  # the number of batches so far

    def loss(self, key: Key, energy: Any, state: Any, batch: Batch) -> Loss:
        count, states = state

        def loss_of(number: int, names: Iterable[str] = ()) -> Loss:
            mine = batch.with_points(batch.points)  # what it remembers is its own
            objective, before = self.parts[number], states[number]
            value, after, info = objective.loss(key, energy, before, mine)
            # There is nothing to count and nothing large where nothing was looked at.
            zero = ("num_", "largest_")
            rest = {name: 0 if name.startswith(zero) else jnp.nan for name in names}
            dtype = batch.points.dtype
            info = {name: jnp.asarray(v, dtype) for name, v in (rest | info).items()}
            return value, (*states[:number], after, *states[number + 1 :]), info

        phases = [functools.partial(loss_of, i) for i in range(len(self.phases))]
        names = {name for phase in phases for name in jax.eval_shape(phase)[2]}
        ends = jnp.cumsum(jnp.array([num for num, _ in self.phases[:-1]], int))
        branches = [functools.partial(phase, names) for phase in phases]
        loss, states, info = jax.lax.switch(jnp.sum(count >= ends), branches)
        return loss, (count + 1, states), info

    @property
    def parts(self) -> tuple[AbstractObjective, ...]:
        return tuple(objective for _, objective in self.phases)
