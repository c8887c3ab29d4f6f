"""What is minimized: losses that add, scale and blur data; those of known labels."""

import abc
from typing import Any, Generic

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from jaxtyping import Array, Float

from equistein._check_arguments import check_arguments
from equistein._numbers import check_positive
from equistein._types import Key, Scalar
from equistein.energies import AbstractEnergy, Energy
from equistein.training._data import Batch, check_classes

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
    r"""A weighted sum of objectives, $\sum_i w_i L_i$."""

    terms: tuple[tuple[float, AbstractObjective], ...]

    def __init__(self, terms: tuple[tuple[float, AbstractObjective], ...]):
        for weight, _ in terms:
            if not abs(weight) < float("inf"):
                raise ValueError(
                    f"Sum needs `terms` with finite weights, but got {weight!r}."
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
                raise ValueError(f"Two objectives both report {both}: add one of them.")
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
        batch = Batch(blurred, batch.labels, batch.rows, batch.step_scale)
        return self.objective.loss(key, energy, state, batch)

    @property
    def parts(self) -> tuple[AbstractObjective, ...]:
        return (self.objective,)


@check_arguments
class CrossEntropy(AbstractObjective[AbstractEnergy]):
    r"""The mean of $-\log p(y | x)$ over the labeled points of a batch.

    Labels are classes from 0 on, and -1 where a class is unknown: such points do not
    count. A batch without labels gives 0.

    References:
        Jaini, Holdijk and Welling (2021), equation loss-JEM.
    """

    def init(self, key: Key, energy: AbstractEnergy, data: Batch) -> Any:
        num = energy.num_classes(data.points.shape[1:])
        if num is None:
            raise ValueError(
                f"CrossEntropy needs a JointEnergy, but got {type(energy).__name__}, "
                "which has no classes."
            )
        if data.labels is None:
            raise ValueError("CrossEntropy needs `labels`: classes, -1 where unknown.")
        check_classes(np.asarray(data.labels), num)

    def loss(self, key: Key, energy: AbstractEnergy, state: Any, batch: Batch) -> Loss:
        logits, labels = batch.evaluate(energy).logits, batch.labels
        assert logits is not None
        assert labels is not None
        known = (labels >= 0).astype(logits.dtype)
        num = jnp.sum(known)
        losses = optax.softmax_cross_entropy_with_integer_labels(
            logits, jnp.maximum(labels, 0)
        )
        loss = jnp.sum(known * losses) / jnp.maximum(num, 1)
        guessed = jnp.argmax(logits, axis=1).astype(labels.dtype)
        right = jnp.sum(known * (guessed == labels).astype(logits.dtype))
        info = {
            "cross_entropy": jnp.where(num > 0, loss, jnp.nan),
            "accuracy": right / num,
            "num_labels": num,
        }
        return loss, state, info

    @property
    def uses_labels(self) -> bool:
        return True


class SquaredError(AbstractObjective[AbstractEnergy]):
    r"""The mean of $(E(x) - e)^2$ over the points of a batch whose energy is known.

    Labels are known energies $e$, and NaN where an energy is unknown.

    References:
        Jaini, Holdijk and Welling (2021), appendix D.2.
    """

    def init(self, key: Key, energy: AbstractEnergy, data: Batch) -> Any:
        values = np.asarray([] if data.labels is None else data.labels)
        is_float = np.issubdtype(values.dtype, np.floating)
        if not is_float or np.isinf(values).any() or np.isnan(values).all():
            raise ValueError(
                "SquaredError needs `labels` that are known energies, floating point "
                "and finite, with NaN where they are unknown but not in all, but got "
                f"{len(values)} of type {values.dtype}, {np.isinf(values).sum()} "
                f"infinite and {np.isnan(values).sum()} NaN."
            )

    def loss(self, key: Key, energy: AbstractEnergy, state: Any, batch: Batch) -> Loss:
        assert batch.labels is not None
        known = jnp.isfinite(batch.labels)
        values = batch.evaluate(energy).energy
        gaps = jnp.where(known, values - jnp.where(known, batch.labels, 0), 0)
        num = jnp.sum(known.astype(values.dtype))
        loss = jnp.sum(gaps**2) / jnp.maximum(num, 1)
        value = jnp.where(num > 0, loss, jnp.nan)
        return loss, state, {"squared_error": value, "num_labels": num}

    @property
    def uses_labels(self) -> bool:
        return True


@check_arguments
class ForceMatching(AbstractObjective[AbstractEnergy]):
    r"""The mean of $|\nabla \log p(x) - F(x) / k_B T|^2$ a coordinate.

    Over the points of a batch whose forces are known. Forces tell an energy wherever
    there are points, but not its constant, nor how two regions weigh that no points
    connect: add another objective, or `SquaredError` to energies in units of $k_B T$.
    On `Blurred` points of the density itself it is target score matching.

    Args:
        scores: The forces $F / k_B T$, one row a data point in the order of the data,
            with NaN in rows that are unknown.

    References:
        Ercolessi and Adams (1994), Interatomic potentials from first-principles
        calculations: the force-matching method; De Bortoli et al. (2024), Target score
        matching, equation 8, for blurred points.
    """

    scores: Float[Array, "datum *shape"]

    def __init__(self, scores: Float[Array, "datum *shape"] | np.ndarray):
        values = np.asarray(scores, float)
        if values.ndim < 2 or np.isinf(values).any() or not _known_rows(values).any():
            raise ValueError(
                "ForceMatching needs `scores`, a row of finite forces / kT for each "
                "data point, with NaN in rows that are unknown but not in all, but got "
                f"shape {values.shape}, {np.isnan(values).sum()} numbers NaN and "
                f"{np.isinf(values).sum()} infinite."
            )
        self.scores = jnp.asarray(values, float)

    def init(self, key: Key, energy: AbstractEnergy, data: Batch) -> Any:
        if data.points.shape != self.scores.shape:
            raise ValueError(
                "ForceMatching needs `scores` of the shape of the data, "
                f"{data.points.shape}, but they have shape {self.scores.shape}."
            )

    def loss(self, key: Key, energy: AbstractEnergy, state: Any, batch: Batch) -> Loss:
        wanted = self.scores[batch.rows].astype(batch.points.dtype)
        known = _known_rows(wanted)
        found = jax.vmap(jax.grad(energy.log_density))(batch.points)
        gaps = jnp.where(known, found - jnp.where(known, wanted, 0), 0)
        num = jnp.sum(known.astype(gaps.dtype))
        loss = jnp.sum(gaps**2) / (jnp.maximum(num, 1) * wanted[0].size)
        value = jnp.where(num > 0, loss, jnp.nan)
        return loss, state, {"force_matching_loss": value, "num_forces": num}

    @property
    def uses_rows(self) -> bool:
        return True


def _known_rows(scores: Any) -> Any:
    """Return which rows have no NaN, with one axis for each axis of the scores."""
    return ~jnp.isnan(scores).any(axis=tuple(range(1, scores.ndim)), keepdims=True)
