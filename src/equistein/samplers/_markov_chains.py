"""Independent Markov chains, and the base of samplers that move them along a path."""

import abc
import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from equistein._arrays import on_device
from equistein._check_arguments import accept_integer_key
from equistein._types import Key, LogDensity, Particles, Point, Scalar
from equistein.kernels import PointSums, Preconditioner
from equistein.samplers._base import AbstractSampler, cond_if_any_run, Info, State
from equistein.samplers._geometric_path import (
    AbstractReference,
    fit_normal,
    FittedNormal,
    Flat,
    GeometricPath,
    PathWalker,
)
from equistein.samplers._steps import (
    check_fraction,
    check_step_size,
    identity,
    inverse_temperature,
    rms,
    Schedule,
)

_GAIN = 0.2  # change of the log step size per unit of acceptance rate
_ROUNDS = 12  # of adaptation, at most; each is as long as all before it
_INDEPENDENT = 0.1  # of the draws of a chain, about
_NUM_CHECKED = 64  # samples of the reference
NUM_ADAPT = 1_000  # where the number of steps is not known

Move: TypeAlias = tuple[
    PathWalker, Float[Array, "*chain"], Int[Array, "*chain"], Bool[Array, "*chain"]
]
"""The walker after a move, the probability of acceptance, the evaluations of the score
that it took, and whether the log density at the proposal was neither NaN nor inf."""


class ChainParameters(eqx.Module):
    """What a move is tuned by, at one temperature.

    The metric is learned from the sums over the chains' points; None for moves in the
    units of the points.
    """

    log_step_size: Float[Array, "*temperature"]
    metric: Preconditioner | None = None
    sums: PointSums | None = None


def is_round_end(
    step: Int[Array, ""], num_adapt: int | Int[Array, ""]
) -> tuple[Bool[Array, ""], Bool[Array, ""]]:
    """Return whether a round of adaptation ends after a step, and if it is at half.

    The rounds double in length; the last fifth of the adaptation is for step sizes.
    """
    last = last_round(num_adapt)
    ends = last >> on_device(np.arange(_ROUNDS))
    return jnp.any(step == ends), jnp.any(step == ends - (ends >> 2))


def last_round(num_adapt: int | Int[Array, ""]) -> Int[Array, ""]:
    """Return the step at which the last round of learning ends."""
    return jnp.asarray(num_adapt, int) * 4 // 5


class ChainState(eqx.Module):
    """What the next step needs: the walkers hold the density at the particles."""

    particles: Particles
    walkers: PathWalker
    parameters: ChainParameters
    evaluations: Int[Array, ""]
    remainder: Int[Array, ""]  # of their total, divided by the number of chains
    num_adapt: Int[Array, ""]
    step: Int[Array, ""]


class ChainInfo(eqx.Module):
    """What a step was like."""

    log_density: Scalar
    acceptance: Scalar
    update_norm: Scalar
    step_size: Scalar
    inverse_temperature: Scalar
    evaluations: Int[Array, ""]
    undefined: Int[Array, ""]


class AbstractMarkovChains(AbstractSampler[ChainState, ChainInfo]):
    """Independent chains, each move of which leaves the density exactly invariant.

    A move starts at a walker, which holds the values of the density that it needs, and
    ends at one; the parameters, such as a step size, belong to a temperature.

    Attributes:
        step_size: The initial step size; None to learn it, and a metric.
        project: What puts a point onto the subspace the particles live on.
        num_adapt: The number of steps, from the start, in which the step size adapts;
            None for half of a run's where the step size is learned, and else none.
        acceptance: The acceptance rate aimed at.
        annealing: The inverse temperature as a function of the steps taken; None is 1.
            It must be None where another sampler sets the temperature.
    """

    step_size: eqx.AbstractVar[float | Scalar | None]
    project: eqx.AbstractVar[Callable[[Point], Point]]
    num_adapt: eqx.AbstractVar[int | Int[Array, ""] | None]
    acceptance: eqx.AbstractVar[float]
    annealing: eqx.AbstractVar[Schedule | None]
    default_step: ClassVar[float] = 1.0
    power: ClassVar[int] = 1  # of a length, in the units of the step size

    def __check_init__(self):
        name = type(self).__name__
        check_step_size(name, "step_size", self.step_size, zero=False)
        check_fraction(name, acceptance=self.acceptance)

    def scale_steps(self, factor: float | Scalar) -> "AbstractMarkovChains":
        """Return these chains with their initial step size multiplied, if it is set."""
        if self.step_size is None:
            return self
        return eqx.tree_at(lambda s: s.step_size, self, self.step_size * factor)

    def for_steps(self, num_steps: int) -> "AbstractMarkovChains":
        """Return these chains for a run: what is learned is learned in half of it."""
        if self.num_adapt is not None or self.step_size is not None:
            return self
        half = on_device(np.asarray(num_steps // 2))
        return dataclasses.replace(self, num_adapt=half)

    def parameters(
        self, particles: Particles, learns_metric: bool = False
    ) -> ChainParameters:
        """Return the initial parameters, with a metric that is learned, if it can be.

        A metric is learned of points with one axis that live everywhere.
        """
        metric = sums = None
        if learns_metric and particles.ndim == 2 and self.project is identity:
            metric = Preconditioner.by_width(particles)
            sums = metric.sums(particles[:0])
        size = self.default_step if self.step_size is None else self.step_size
        size = jnp.asarray(size, particles.dtype)
        if metric is None and self.step_size is None:
            gaps = particles - jnp.mean(particles, axis=0, keepdims=True)
            spread = jnp.sqrt(jnp.mean(gaps**2))
            size = size * jnp.where(spread > 0, spread, 1) ** self.power
        return ChainParameters(jnp.log(size), metric, sums)

    @abc.abstractmethod
    def move(
        self,
        noise: Any,
        path: GeometricPath,
        walker: PathWalker,
        beta: Scalar,
        parameters: ChainParameters,
    ) -> Move:
        r"""Make a move that leaves the path's density at $\beta$ invariant.

        The noise is what `noise` returns for this walker: a key by default.
        """

    def varied(self) -> "AbstractMarkovChains":
        """Return these chains with steps of many lengths, if they have but one."""
        return self

    @accept_integer_key
    def noise(self, key: Key, points: Particles) -> PyTree:
        """Return the randomness of a move of each point, stacked: here keys."""
        return jr.split(key, len(points))

    @accept_integer_key
    def move_all(
        self,
        key: Key,
        path: GeometricPath,
        walkers: PathWalker,
        beta: Scalar,
        parameters: ChainParameters,
    ) -> Move:
        """Move each of some walkers, stacked on axis 0."""
        move = lambda noise, walker: self.move(noise, path, walker, beta, parameters)
        return jax.vmap(move)(self.noise(key, walkers.point), walkers)

    def adapt(self, parameters: ChainParameters, rate: Scalar) -> ChainParameters:
        """Return the parameters after moves that were accepted at this rate."""
        log_size = parameters.log_step_size + _GAIN * (rate - self.acceptance)
        return dataclasses.replace(parameters, log_step_size=log_size)

    def learn(
        self, parameters: ChainParameters, rate: Scalar, points: Particles,
        step: Int[Array, ""], num_adapt: Int[Array, ""],
    ) -> ChainParameters:  # fmt: skip
        """Return the parameters after step number `step`, while they adapt.

        Where a round ends, the metric is that of its points, and the step size begins
        again where it began, as it is in units of the metric.
        """

        def learned():
            metric, sums = parameters.metric, parameters.sums
            size = self.adapt(parameters, rate).log_step_size
            if metric is None or sums is None:
                return ChainParameters(size)
            ends, at_half = is_round_end(step, num_adapt)
            total = sums + metric.sums(points)
            updated = lambda: metric.updated(total, _INDEPENDENT * total.count)
            first = self.default_step if self.step_size is None else self.step_size
            size = jnp.where(ends, jnp.log(jnp.asarray(first, size.dtype)), size)
            kept = jnp.where(ends | at_half, 0, 1).astype(size.dtype)
            new = cond_if_any_run(ends, updated, metric)
            return ChainParameters(size, new, total * kept)

        return cond_if_any_run(step <= num_adapt, learned, parameters)

    def init(self, particles: Particles, log_density: LogDensity) -> ChainState:
        """Build the state; the particles are projected."""
        x = jax.vmap(self.project)(particles)
        # The path from a flat reference is p^beta.
        walkers = jax.vmap(GeometricPath(log_density, Flat()).evaluate)(x)
        zero = jnp.zeros((), int)
        parameters = self.parameters(x, learns_metric=self.step_size is None)
        num_adapt = self.num_adapt
        if num_adapt is None:
            num_adapt = 0 if self.step_size is not None else NUM_ADAPT
        return ChainState(
            x, walkers, parameters, zero + 1, zero, jnp.asarray(num_adapt, int), zero
        )

    @accept_integer_key
    def step(
        self, key: Key, state: ChainState, log_density: LogDensity
    ) -> tuple[ChainState, ChainInfo]:
        x, num = state.particles, len(state.particles)
        path = GeometricPath(log_density, Flat())
        beta = inverse_temperature(self.annealing, state.step, x.dtype)
        parameters = state.parameters
        walkers, chances, spent, defined = self.move_all(
            key, path, state.walkers, beta, parameters
        )
        rate = jnp.mean(chances)
        learned = self.learn(
            parameters, rate, walkers.point, state.step + 1, state.num_adapt
        )
        total = state.remainder + jnp.sum(spent)
        evaluations = state.evaluations + total // num
        new = ChainState(
            walkers.point, walkers, learned, evaluations, total % num,
            state.num_adapt, state.step + 1,
        )  # fmt: skip
        info = ChainInfo(
            jnp.mean(state.walkers.value), rate, rms(walkers.point - x),
            jnp.exp(parameters.log_step_size), beta, evaluations, jnp.sum(~defined),
        )  # fmt: skip
        return new, info

    def log_densities(self, state: ChainState) -> Float[Array, " particle"]:
        return state.walkers.value


class AbstractPathSampler(AbstractSampler[State, Info], Generic[State, Info]):
    """A sampler whose chains are on the path from a reference to the target.

    Attributes:
        reference: Where the path begins; None for a normal density fitted to the start.
        reaches_reference: Whether some chain is there; if not, None is no reference.
    """

    inner: eqx.AbstractVar[AbstractMarkovChains]
    reference: eqx.AbstractVar[AbstractReference | None]
    reaches_reference: eqx.AbstractVar[bool]
    num_adapt: eqx.AbstractVar[int | Int[Array, ""] | None]
    reach: ClassVar[float] = 1.0  # times the spread of the start, of that reference
    adapts: ClassVar[int] = 2  # as a part of a run: half of it

    def __check_init__(self):
        if self.inner.annealing is not None:
            raise ValueError(
                f"{type(self).__name__} sets the temperature of its `inner` sampler: "
                "leave out its `annealing`."
            )

    def check_shape(self, shape: tuple[int, ...]) -> None:
        self.inner.check_shape(shape)

    def check(self, log_density: LogDensity, particles: Particles) -> None:
        """Raise `ValueError` unless the path from the reference is valid."""
        if self.reference is None and not self.reaches_reference:
            return
        gap, values = map(np.asarray, _try_reference(self, log_density, particles))
        if not gap < 1e-4:
            raise ValueError(
                f"{type(self).__name__} needs a `reference` on the subspace of its "
                "chains: give both the same, as Normal(center, scale, cloud) and "
                "MALA(..., project=cloud.project)."
            )
        # A fitted one is wide at first, and is fitted again; NaN is counted.
        base = eqx.filter_eval_shape(self._base, particles)
        fitted = isinstance(base, FittedNormal)
        bad = int(np.sum((values == np.inf) | (np.isnan(values) & (not fitted))))
        if bad or not (fitted or np.any(np.isfinite(values))):
            fault = f"infinite or NaN at {bad}" if bad else "zero density at all"
            raise ValueError(
                f"`log_density` is {fault} of {len(values)} samples of the reference: "
                "it must be finite, or minus infinity where the density is zero, and "
                "the `reference` must meet its support."
            )

    def for_steps(self, num_steps: int) -> "AbstractPathSampler":
        """Return this sampler for a run, of which a part adapts."""
        if self.num_adapt is not None:
            return self
        number = on_device(np.asarray(num_steps // self.adapts))
        is_none = lambda leaf: leaf is None
        return eqx.tree_at(lambda s: s.num_adapt, self, number, is_leaf=is_none)

    def scale_steps(self, factor: float | Scalar) -> "AbstractPathSampler":
        """Return this sampler with the inner one's step sizes multiplied."""
        return eqx.tree_at(lambda s: s.inner, self, self.inner.scale_steps(factor))

    def _base(self, particles: Particles) -> AbstractReference | Flat:
        """Return where the path begins, for chains that start at some particles."""
        if self.reference is not None:
            return self.reference
        if not self.reaches_reference:
            return Flat()
        return fit_normal(particles, self.inner.project, self.reach)

    def _path(
        self, log_density: LogDensity, particles: Particles, arrays: PyTree
    ) -> GeometricPath:
        """Return the path of a state that holds the arrays of its reference."""
        # Only the structure is of the particles now: the reference fits the start.
        static = eqx.filter(self._base(particles), eqx.is_array, inverse=True)
        return GeometricPath(log_density, eqx.combine(arrays, static))

    def _parameters(self, particles: Particles, num: int) -> ChainParameters:
        """Return those of `num` temperatures, before the density is known."""
        repeat = lambda leaf: jnp.broadcast_to(leaf[None], (num, *leaf.shape))
        parameters = self.inner.parameters(particles, learns_metric=True)
        return jax.tree.map(repeat, parameters)


@eqx.filter_jit
def _try_reference(sampler, log_density, particles) -> tuple[Scalar, Array]:
    """Return the gap of the two subspaces, and log p at samples of the reference."""
    reference = sampler._base(particles)
    point = jr.normal(jr.key(0), particles.shape[1:], particles.dtype)
    gap = jnp.max(jnp.abs(sampler.inner.project(point) - reference.project(point)))
    return gap, jax.vmap(log_density)(reference.sample(jr.key(0), _NUM_CHECKED))
