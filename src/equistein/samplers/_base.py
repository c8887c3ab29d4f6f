"""The sampler interface."""

import abc
from typing import ClassVar, Generic, TypeVar

import equinox as eqx
from jax.sharding import Mesh
from jaxtyping import Array

from equistein._types import Key, LogDensity, Particles, Scalar

State = TypeVar("State")
Info = TypeVar("Info")


class AbstractSampler(eqx.Module, Generic[State, Info]):
    """A rule for moving a set of particles towards a target density.

    The state has a field `particles` and a field `step`, the number of steps taken;
    the info has the fields `log_density` and `update_norm` besides others. What is not
    abstract may be left as it is. A sampler `takes_batches` if its density may be
    another in each step, and right on average.
    """

    takes_batches: ClassVar[bool] = False

    @abc.abstractmethod
    def init(self, particles: Particles) -> State:
        """Build the state that `step` carries."""

    @abc.abstractmethod
    def step(
        self, key: Key, state: State, log_density: LogDensity
    ) -> tuple[State, Info]:
        """Advance once; return the new state and what was worth recording."""

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise `ValueError` unless the sampler moves points of this shape."""

    def check(self, log_density: LogDensity, particles: Particles) -> None:
        """Raise `ValueError` if the density lacks what the sampler relies on."""

    def renewed(self, state: State, log_density: LogDensity) -> State:
        """Return a state whose values of a density, if it has any, are of this one.

        `run` asks for it before it goes on, so that another density may be given.
        """
        del log_density
        return state

    def summary(self, state: State) -> dict[str, Array]:
        """Return what a run ends with besides its particles, such as weights."""
        del state
        return {}

    def scaled(self, factor: float | Scalar) -> "AbstractSampler[State, Info]":
        """Return this sampler with all its step sizes multiplied by `factor`."""
        del factor
        return self

    def on(self, mesh: Mesh, *, ring: bool = False) -> "AbstractSampler":
        """Return this sampler with its particles split over the devices of a mesh.

        As it stands it is for particles that do not see each other, which need no
        `ring`.
        """
        from equistein.samplers._split_rows import SplitRows  # which is a sampler

        return SplitRows(self, mesh)
