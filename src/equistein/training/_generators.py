"""How new points are drawn from a learned energy."""

import abc
import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Generic

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float

from equistein._arrays import on_device
from equistein._check_arguments import accept_integer_key, check_arguments
from equistein._numbers import check_integers
from equistein._progress import progress_bar
from equistein._types import Key, LogDensity, Particles, Point, Scalar
from equistein.energies import AbstractEnergy, Energy
from equistein.groups import AbstractGroup
from equistein.samplers import AbstractSampler, run, SVGD, visit
from equistein.training._initial import AbstractInitial

Project = Callable[[Point], Point]

_CHAINS = 8  # that run on: few, whose distances fit into the cache of a processor


@check_arguments
class Clamp(eqx.Module):
    r"""Coordinates that are held while the others are drawn.

    $$p(x_F \mid x_H = v_H)$$

    Where points live on a subspace, such as clouds whose center is at the origin,
    positions are held relative to each other. Samples are in the frame of the values,
    where held coordinates are these exactly.

    Args:
        values: A point that has the values to hold; its others do not matter.
        mask: Which coordinates are held: one truth value for each, or for each entry of
            the first axes, such as one for each atom, or pixel.
        label: The class to draw, too.
    """

    values: Float[Array, "*shape"]
    mask: Bool[Array, "*shape"]
    label: int | None = None

    def __init__(self, values: Any, mask: Any, label: int | None = None):
        values, mask = np.asarray(values), np.asarray(mask)
        fits = mask.dtype == bool and mask.shape == values.shape[: mask.ndim]
        if not fits or values.dtype.kind not in "iuf":
            raise ValueError(
                "Clamp needs `values` that are real numbers and a `mask` of truth "
                f"values, of their shape {values.shape} or its first axes, but got "
                f"types {values.dtype} and {mask.dtype} and a mask of {mask.shape}."
            )
        wide = mask.reshape(mask.shape + (1,) * (values.ndim - mask.ndim))
        mask = np.broadcast_to(wide, values.shape)
        finite = np.isfinite(values[mask])
        if mask.all() or not mask.any() or not finite.all():
            raise ValueError(
                f"Clamp needs a `mask` that holds some of {mask.size} coordinates, at "
                f"finite `values`, but it holds {mask.sum()}, {finite.sum()} at such."
            )
        self.values = jnp.asarray(np.where(mask, values, 0), float)
        self.mask, self.label = jnp.asarray(mask), label

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise `ValueError` unless this holds coordinates of points of a shape."""
        if self.values.shape != shape:
            raise ValueError(
                f"The clamp is outside the points: its `values` have the shape "
                f"{self.values.shape}, but points have {shape}."
            )

    def hold(self, point: Point, project: Project, noise: Point | float = 0.0) -> Point:
        """Return a point with held coordinates set, with noise, in its own frame."""
        values = self.values.astype(point.dtype) + noise
        shift = self._displacement(point, values, project)
        return jnp.where(self.mask, values + shift, point)

    def restore(self, point: Point, project: Project) -> Point:
        """Return a point with held coordinates set, in the frame of the values."""
        values = self.values.astype(point.dtype)
        shift = self._displacement(point, values, project)
        return jnp.where(self.mask, values, point - shift)

    def _displacement(self, point: Point, values: Point, project: Project) -> Point:
        """Return the mean over held coordinates of how far a point is displaced."""
        # What a projection takes off is the mean over all; their ratio is that over
        # some.
        held = self.mask.astype(point.dtype)
        gap = held * (point - values)
        off, share = gap - project(gap), held - project(held)
        moved = share > 1e-6
        return jnp.where(moved, off / jnp.where(moved, share, 1), 0)


Condition = int | np.integer | Clamp | None
"""What is drawn: a class, whose energy is `energy.condition(label)`; or what goes with
coordinates that are held; None is all together."""


def parts_of(condition: Any) -> tuple[Any, Clamp | None]:
    """Return the label and the clamp of a condition, None where it has none."""
    if isinstance(condition, Clamp):
        return condition.label, condition
    return condition, None


class AbstractGenerator(eqx.Module, Generic[Energy]):
    """A way to draw new points from an energy that is fitted already."""

    num_at_once: eqx.AbstractVar[int]  # the number of points drawn together

    @abc.abstractmethod
    def draw(
        self, key: Key, energy: Energy, num: int, condition: Condition
    ) -> Particles:
        """Draw new points, all together; the arguments are those of `sample`."""

    @accept_integer_key
    def sample(
        self,
        key: Key,
        energy: Energy,
        num: int,
        condition: Condition = None,
        *,
        progress: bool = False,
    ) -> Particles:
        """Draw any number of new points, some at once."""
        check_integers("`sample`", num=num)
        size, parts = min(num, self.num_at_once), []
        for index in progress_bar(range(-(-num // size)), disable=not progress):
            own_key = key
            if size < num:
                own_key = jr.fold_in(key, on_device(np.uint32(index)))
            parts.append(self.draw(own_key, energy, size, condition))
        return parts[0] if len(parts) == 1 else jnp.concatenate(parts)[:num]

    def scale_steps(self, factor: Scalar) -> "AbstractGenerator[Energy]":
        """Return the generator with all step sizes multiplied by a factor."""
        return self


@check_arguments
class SamplingGenerator(AbstractGenerator[AbstractEnergy]):
    """Runs a sampler, such as `SVGD(kernel)`, from starts such as `Box(data, group)`.

    Args:
        num_at_once: The number of points drawn together; their forces join.
        num_at_least: The number that are drawn where fewer are wanted.
        every: The steps between points of a chain, at most eight of which then run on
            after `num_steps`; by default each point is the end of a chain.
    """

    sampler: AbstractSampler
    initial: AbstractInitial
    _: dataclasses.KW_ONLY
    num_steps: int = 1_500
    num_at_once: int = 512
    num_at_least: int = 1
    every: int | None = None

    def __check_init__(self):
        counts = {"num_steps": self.num_steps, "num_at_once": self.num_at_once}
        check_integers("SamplingGenerator", **counts)

    def draw(
        self, key: Key, energy: AbstractEnergy, num: int, condition: Condition
    ) -> Particles:
        label, clamp = parts_of(condition)
        model = energy if label is None else energy.condition(label)
        runs_on = self.every is not None and clamp is None
        total = min(num, _CHAINS) if runs_on else max(num, self.num_at_least)
        apart = max(1, total // num)  # neighbors may be copies
        chosen = slice(0, apart * num, apart)
        start_key, run_key = _split(key)
        traced = None if label is None else np.int32(label)
        start = self.initial.sample(start_key, total, traced)
        # The energy was checked when it was fitted.
        steps = functools.partial(run, run_key, num_steps=self.num_steps, check=False)
        if clamp is None:
            found = steps(self.sampler, model.log_density, start)
            points = found.particles[chosen]
            if self.every is not None:
                rounds, state = -(-num // total), found.state
                points = visit(
                    run_key, self.sampler, model.log_density, state, self.every, rounds
                )[:num]
            group: Any = energy.group(points.shape[1:])
            if group.is_periodic:
                return jax.vmap(group.wrap)(points)
            # A population, copied from few ancestors, has more of some copies.
            if group.order is None:
                return _mirrored(key, group, points)
            is_even = isinstance(self.sampler, SVGD)
            return points if is_even else _move_at_random(group, key, points)
        clamp.check_shape(start.shape[1:])
        held = _HeldDensity(model, clamp)
        start = jax.vmap(held.hold)(start)
        points = steps(_HeldSampler(self.sampler), held, start).particles[chosen]
        project = model.group(points.shape[1:]).project
        return jax.vmap(lambda x: clamp.restore(x, project))(points)

    def scale_steps(self, factor: Scalar) -> "SamplingGenerator":
        return eqx.tree_at(lambda g: g.sampler, self, self.sampler.scale_steps(factor))


def _mirrored(key: Key, group: AbstractGroup, points: Particles) -> Particles:
    """Return clouds mirrored with probability 1/2, if the group has reflections."""
    if group.without_reflections() is group:
        return points
    factors = np.ones((len(points), 1, points.shape[2]), points.dtype)
    rng = np.random.default_rng(np.asarray(jr.key_data(key)))
    factors[..., 0] = rng.choice([-1, 1], size=(len(points), 1))
    return on_device(factors * np.asarray(points))


@eqx.filter_jit
def _move_at_random(group: AbstractGroup, key: Key, points: Particles) -> Particles:
    return jax.vmap(group.act)(group.sample(key, len(points)), points)


@jax.jit
def _split(key: Key) -> tuple[Key, ...]:
    return tuple(jr.split(key))


class _HeldDensity(eqx.Module):
    r"""The density of the free coordinates, $\log p(x_F, v_H)$."""

    energy: AbstractEnergy
    clamp: Clamp

    def __call__(self, point: Point) -> Scalar:
        return self.energy.log_density(self.hold(point))

    def hold(self, point: Point) -> Point:
        """Return a point with held coordinates set."""
        return self.clamp.hold(point, self.energy.group(point.shape).project)


class _HeldSampler(AbstractSampler[Any, Any]):
    """Takes the steps of a sampler, and sets held coordinates again after each."""

    # The density does not depend on them: what a sampler knows of it stays true.

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
