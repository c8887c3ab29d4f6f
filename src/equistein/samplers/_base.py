"""The sampler interface, and a conditional for the steps of several runs."""

import abc
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float, PyTree

from equistein._check_arguments import accept_integer_key
from equistein._sharding import shard_rows
from equistein._types import Key, LogDensity, Particles, Scalar

State = TypeVar("State")
Info = TypeVar("Info")
Value = TypeVar("Value", bound=PyTree)


class AbstractSampler(eqx.Module, Generic[State, Info]):
    """A rule for moving a set of particles towards a target density.

    A state has the fields `particles` and `step`, the number of steps taken, and may
    hold values of the density: it belongs to the density that `init` was given. An info
    is flat, its arrays the columns of the history: `log_density`, the mean over the
    particles before the step, `update_norm` and others.
    """

    @abc.abstractmethod
    def init(self, particles: Particles, log_density: LogDensity) -> State:
        """Build the state that `step` carries."""

    @abc.abstractmethod
    def step(
        self, key: Key, state: State, log_density: LogDensity
    ) -> tuple[State, Info]:
        """Advance once; return the new state and what is worth recording."""

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise `ValueError` unless the sampler moves points of this shape."""

    def check(self, log_density: LogDensity, particles: Particles) -> None:
        """Raise `ValueError` if the density lacks what the sampler relies on."""

    def log_densities(self, state: State) -> Float[Array, " particle"] | None:
        """Return the log densities that the state holds of its particles, if any."""
        return None

    def summary(self, state: State) -> dict[str, Any]:
        """Return results of a run beyond the particles, such as weights, in NumPy."""
        return {}

    def for_steps(self, num_steps: int) -> "AbstractSampler[State, Info]":
        """Return this sampler as a run from its start, of so many steps, needs it."""
        return self

    def scale_steps(self, factor: float | Scalar) -> "AbstractSampler[State, Info]":
        """Return this sampler with its step sizes, if it has any, multiplied."""
        return self

    def shard(self, mesh: Mesh) -> "AbstractSampler":
        """Return this sampler with its particles split over the devices of a mesh.

        The default is for particles that do not interact.
        """
        return ShardedSampler(self, mesh)


class ShardedSampler(AbstractSampler[Any, Any]):
    """A sampler whose particles do not interact, on several devices.

    Each device moves its particles, the last one perhaps fewer. The mesh has an axis
    `particles`.
    """

    inner: AbstractSampler
    mesh: Mesh = eqx.field(static=True)

    def init(self, particles: Particles, log_density: LogDensity) -> PyTree:
        state = self.inner.init(particles, log_density)
        return shard_rows(state, self.mesh, len(particles))

    @accept_integer_key
    def step(
        self, key: Key, state: PyTree, log_density: LogDensity
    ) -> tuple[PyTree, Any]:
        num = len(state.particles)
        state = shard_rows(state, self.mesh, num)
        state, info = self.inner.step(key, state, log_density)
        return shard_rows(state, self.mesh, num), info

    def shard(self, mesh: Mesh) -> "ShardedSampler":
        return ShardedSampler(self.inner, mesh)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        self.inner.check_shape(shape)

    def check(self, log_density: LogDensity, particles: Particles) -> None:
        self.inner.check(log_density, particles)

    def log_densities(self, state: PyTree) -> Array | None:
        return self.inner.log_densities(state)

    def summary(self, state: PyTree) -> dict[str, Any]:
        return self.inner.summary(state)

    def for_steps(self, num_steps: int) -> "ShardedSampler":
        return ShardedSampler(self.inner.for_steps(num_steps), self.mesh)

    def scale_steps(self, factor: float | Scalar) -> "ShardedSampler":
        return ShardedSampler(self.inner.scale_steps(factor), self.mesh)


def shard_samplers(tree: PyTree, mesh: Mesh) -> PyTree:
    """Return a tree with each sampler in it split over the devices of a mesh."""
    is_sampler = lambda node: isinstance(node, AbstractSampler)
    split = lambda node: node.shard(mesh) if is_sampler(node) else node
    return jax.tree.map(split, tree, is_leaf=is_sampler)


def cond_if_any_run(
    condition: Bool[Array, ""], compute: Callable[[], Value], otherwise: Value
) -> Value:
    """Return `compute()` where the condition holds, and `otherwise` elsewhere."""
    # Under `vmap`, `lax.cond` computes both branches in every step. Here nothing is
    # computed while the condition holds in none of the runs.

    def selected():
        pick = lambda new, old: jnp.where(condition, new, old)
        return jax.tree.map(pick, compute(), otherwise)

    return jax.lax.cond(_any_run(condition), selected, lambda: otherwise)


@jax.custom_batching.custom_vmap
def _any_run(condition: Bool[Array, ""]) -> Bool[Array, ""]:
    """Return the condition; of vmapped runs, one value: whether it holds in any."""
    return condition


@_any_run.def_vmap
def _any_of_many(size, batched, condition):
    (is_batched,) = batched
    combined = jnp.any(condition, axis=0) if is_batched else condition
    return _any_run(combined), False
