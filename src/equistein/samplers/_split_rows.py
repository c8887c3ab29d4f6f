"""Independent chains, split over devices."""

from typing import Any

import equinox as eqx
import jax
from jax.sharding import Mesh
from jaxtyping import Array, PyTree

from equistein._gate import keyed
from equistein._sharding import keep_split
from equistein._types import Key, LogDensity, Particles, Scalar
from equistein.samplers._base import AbstractSampler


class SplitRows(AbstractSampler[Any, Any]):
    """A sampler whose particles do not interact, on several devices.

    Each device moves its particles, the last one perhaps fewer; what is a mean over all
    of them is gathered.

    Args:
        inner: The sampler.
        mesh: The devices, with an axis `particles`.
    """

    inner: AbstractSampler
    mesh: Mesh = eqx.field(static=True)

    def init(self, particles: Particles, log_density: LogDensity) -> PyTree:
        state = self.inner.init(particles, log_density)
        return keep_split(state, self.mesh, len(particles))

    @keyed
    def step(
        self, key: Key, state: PyTree, log_density: LogDensity
    ) -> tuple[PyTree, Any]:
        num = len(state.particles)
        state = keep_split(state, self.mesh, num)
        state, info = self.inner.step(key, state, log_density)
        return keep_split(state, self.mesh, num), info

    def on(self, mesh: Mesh) -> "SplitRows":
        return SplitRows(self.inner, mesh)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        self.inner.check_shape(shape)

    def check(self, log_density: LogDensity, particles: Particles) -> None:
        self.inner.check(log_density, particles)

    def log_densities(self, state: PyTree) -> Array | None:
        return self.inner.log_densities(state)

    def summary(self, state: PyTree) -> dict[str, Array]:
        return self.inner.summary(state)

    def scaled(self, factor: float | Scalar) -> "SplitRows":
        return SplitRows(self.inner.scaled(factor), self.mesh)


def on_mesh(tree: PyTree, mesh: Mesh) -> PyTree:
    """Return a tree with each sampler in it split over the devices of a mesh."""
    is_sampler = lambda node: isinstance(node, AbstractSampler)
    split = lambda node: node.on(mesh) if is_sampler(node) else node
    return jax.tree.map(split, tree, is_leaf=is_sampler)
