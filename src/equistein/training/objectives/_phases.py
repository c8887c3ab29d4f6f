"""Objectives one after another."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Int, PyTree

from equistein._gate import gate
from equistein._numbers import is_integer
from equistein._types import Key, Scalar
from equistein.training._batch import Batch
from equistein.training.objectives._base import AbstractObjective, Info


class PhasesState(eqx.Module):
    """What the next batch needs.

    Attributes:
        count: The number of batches so far.
        states: The state of the objective of each phase.
    """

    count: Int[Array, ""]
    states: tuple[PyTree, ...]


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

    def __init__(self, phases: Sequence[Any]):
        self.phases = tuple(_checked(phase) for phase in phases)
        if not self.phases:
            raise ValueError(
                "Phases needs `phases`, pairs of a number of batches and an objective, "
                "but got none."
            )

    def init(self, key: Key, energy: Any, data: Batch) -> PhasesState:
        keys = jr.split(key, len(self.phases))
        states = tuple(
            objective.init(key, energy, data)
            for key, (_, objective) in zip(keys, self.phases, strict=True)
        )
        return PhasesState(jnp.zeros((), int), states)

    def loss(
        self, key: Key, energy: Any, state: PhasesState, batch: Batch
    ) -> tuple[Scalar, PhasesState, Info]:
        def losses(number: int) -> Callable[[], tuple[Scalar, tuple, Info]]:
            objective, before = self.phases[number][1], state.states[number]

            def loss() -> tuple[Scalar, tuple, Info]:
                mine = batch.moved_to(batch.points)  # what it remembers is its own
                value, after, info = objective.loss(key, energy, before, mine)
                states = list(state.states)
                states[number] = after
                return value, tuple(states), info

            return loss

        phases = [losses(number) for number in range(len(self.phases))]
        names = {name for phase in phases for name in jax.eval_shape(phase)[2]}
        ends = jnp.cumsum(jnp.array([num for num, _ in self.phases[:-1]], int))
        now = jnp.sum(state.count >= ends)
        all_told = [_telling(phase, names, batch.points.dtype) for phase in phases]
        loss, states, info = jax.lax.switch(now, all_told)
        return loss, PhasesState(state.count + 1, states), info

    @property
    def uses_labels(self) -> bool:
        return any(objective.uses_labels for _, objective in self.phases)

    @property
    def uses_rows(self) -> bool:
        return any(objective.uses_rows for _, objective in self.phases)


def _checked(phase: Any) -> tuple[int, AbstractObjective]:
    """Return a phase, or raise `ValueError` if a part is missing or wrong."""
    pair = isinstance(phase, tuple | list) and len(phase) == 2
    if pair and is_integer(phase[0]) and phase[0] >= 1:
        if isinstance(phase[1], AbstractObjective):
            return int(phase[0]), phase[1]
    raise ValueError(
        "Phases needs pairs of a number of batches, at least 1, and an objective, such "
        f"as (4_000, EnergyMatching(0.1)), but got {phase!r}."
    )


def _telling(
    loss: Callable[[], tuple[Scalar, tuple, Info]], names: set[str], dtype: Any
) -> Callable[[], tuple[Scalar, tuple, Info]]:
    """Return a loss that reports something under all names."""

    def telling() -> tuple[Scalar, tuple, Info]:
        value, states, info = loss()
        # There is nothing to count and nothing large where nothing was looked at.
        nothing = {
            name: 0 if name.startswith(("num_", "largest_")) else jnp.nan
            for name in names
        }
        reported = {name: jnp.asarray(v, dtype) for name, v in (nothing | info).items()}
        return value, states, reported

    return telling
