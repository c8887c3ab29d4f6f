"""How new points are drawn from a learned energy."""

import abc
import dataclasses
from typing import Any, Generic

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array

from equistein._arrays import check_num
from equistein._gate import gate, keyed
from equistein._numbers import check_integers
from equistein._progress import progress_bar
from equistein._types import Key, LogDensity, Particles, Point, Scalar
from equistein.energies import AbstractEnergy, Energies
from equistein.samplers import AbstractSampler, run
from equistein.training._clamp import Clamp, parts_of
from equistein.training._initial import AbstractInitial

Condition = int | np.integer | Clamp | None
"""What is drawn: a class or the number of a formula, of which `energy.given(label)` is
the energy; or what goes with coordinates that are held; None is all together."""


class AbstractGenerator(eqx.Module, Generic[Energies]):
    """A way to draw new points from an energy that is known.

    Attributes:
        num_at_once: The number of points drawn together.
    """

    num_at_once: eqx.AbstractVar[int]

    @abc.abstractmethod
    def draw(
        self, key: Key, energy: Energies, num: int, condition: Condition
    ) -> Particles:
        """Draw new points, all together.

        Raises:
            ValueError: If the energy knows no such condition, or a clamp is outside
                the points.
        """

    @keyed
    def sample(
        self,
        key: Key,
        energy: Energies,
        num: int,
        condition: Condition = None,
        *,
        progress: bool = False,
    ) -> Particles:
        """Draw any number of new points, some at once.

        Raises:
            ValueError: If `num` is no positive integer, the energy knows no such
                condition, or a clamp is outside the points.
        """
        check_num(num)
        size, parts = min(num, self.num_at_once), []
        for index in progress_bar(range(-(-num // size)), disable=not progress):
            parts.append(self.draw(jr.fold_in(key, index), energy, size, condition))
        return jnp.concatenate(parts)[:num]

    def scaled(self, factor: Scalar) -> "AbstractGenerator[Energies]":
        """Return the generator with all step sizes multiplied by a factor."""
        return self


@gate
class SamplingGenerator(AbstractGenerator[AbstractEnergy]):
    """Runs a sampler from fresh starts.

    Args:
        sampler: Such as `SVGD(kernel, optax.sgd(0.1), langevin=0.01)`.
        initial: Where points start, such as `Box(data, group)`.
        num_steps: The number of steps.
        num_at_once: The number of points drawn together; their forces join.

    Raises:
        ValueError: If an argument is invalid.
    """

    sampler: AbstractSampler
    initial: AbstractInitial
    _: dataclasses.KW_ONLY
    num_steps: int = 1_500
    num_at_once: int = 512

    def __check_init__(self):
        counts = {"num_steps": self.num_steps, "num_at_once": self.num_at_once}
        check_integers("SamplingGenerator", **counts)

    def draw(
        self, key: Key, energy: AbstractEnergy, num: int, condition: Condition
    ) -> Particles:
        label, clamp = parts_of(condition)
        model = energy if label is None else energy.given(label)
        start_key, run_key = jr.split(key)
        start = self.initial.sample(
            start_key, num, None if label is None else int(label)
        )
        if clamp is None:
            return self._run(run_key, self.sampler, model.log_density, start)
        clamp.check_shape(start.shape[1:])
        held = _HeldDensity(model, clamp)
        start = jax.vmap(held.hold)(start)
        points = self._run(run_key, _HeldSampler(self.sampler), held, start)
        return jax.vmap(held.restore)(points)

    def scaled(self, factor: Scalar) -> "SamplingGenerator":
        return eqx.tree_at(lambda g: g.sampler, self, self.sampler.scaled(factor))

    def _run(
        self,
        key: Key,
        sampler: AbstractSampler,
        log_density: LogDensity,
        start: Particles,
    ) -> Particles:
        return run(
            key, sampler, log_density, start, num_steps=self.num_steps,
            check=False,  # the energy was checked when it was fitted
        ).particles  # fmt: skip


class _HeldDensity(eqx.Module):
    r"""The density of the free coordinates, $\log p(x_F, v_H)$."""

    energy: AbstractEnergy
    clamp: Clamp

    def __call__(self, point: Point) -> Scalar:
        return self.energy.log_density(self.hold(point))

    def hold(self, point: Point) -> Point:
        """Return a point with held coordinates set."""
        return self.clamp.hold(point, self.energy.group(point.shape).project)

    def restore(self, point: Point) -> Point:
        """Return a point in the frame of the clamp's values."""
        return self.clamp.restore(point, self.energy.group(point.shape).project)


class _HeldSampler(AbstractSampler[Any, Any]):
    """Takes the steps of a sampler, and sets held coordinates again after each.

    The density does not depend on them: what a sampler knows of it stays true.
    """

    sampler: AbstractSampler

    def init(self, particles: Particles, log_density: LogDensity) -> Any:
        return self.sampler.init(particles, log_density)

    def step(self, key: Key, state: Any, log_density: LogDensity) -> tuple[Any, Any]:
        assert isinstance(log_density, _HeldDensity)
        state, info = self.sampler.step(key, state, log_density)
        held = jax.vmap(log_density.hold)(state.particles)
        return eqx.tree_at(lambda s: s.particles, state, held), info

    def summary(self, state: Any) -> dict[str, Array]:
        return self.sampler.summary(state)
