"""Averages over elements of a group, one after the other."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from equistein._products import einsum
from equistein._types import Key, Point
from equistein.groups import AbstractGroup
from equistein.kernels._pairs import (
    centered,
    flatten,
    Pairs,
    Sources,
    squared_distances,
    Targets,
)
from equistein.kernels._radial import AbstractRadialKernel
from equistein.kernels.averages._base import AbstractAverage


class Elements(AbstractAverage):
    """The mean over some elements of a group, stacked on axis 0.

    SVGD with it is SVGD against the particles' copies: the sources are expanded, never
    the targets.
    """

    group: AbstractGroup
    stacked: PyTree

    def act(self, particles: Float[Array, "n *shape"]) -> Float[Array, "g n *shape"]:
        """Return $g x$ for all elements and particles, projected."""
        return self._moved(self.group.act, particles)

    def push(self, scores: Float[Array, "n *shape"]) -> Float[Array, "g n *shape"]:
        """Return the scores at all $g x$, projected."""
        return self._moved(self.group.push, scores)

    def push_inverse(
        self, forces: Float[Array, "g n *shape"]
    ) -> Float[Array, "g n *shape"]:
        """Return the forces of each copy, turned back by its element."""
        inverse = jax.vmap(self.group.inverse)(self.stacked)
        move = jax.vmap(jax.vmap(self.group.push, (None, 0)), (0, 0))
        return move(inverse, forces)

    def stein_force(self, base, targets, sources, scores):
        orbits, moved = self.act(sources), self.push(scores)
        targets, shape = jax.vmap(self.project)(targets), (-1, *sources.shape[1:])
        copies = orbits.reshape(shape), moved.reshape(shape)
        return base._force_about(orbits[0], targets, *copies)

    def matrix(self, base, x, y):
        weights = jax.vmap(base, (None, 0))(self.project(x), self.act(y[None])[:, 0])
        basis = jnp.eye(x.size, dtype=x.dtype).reshape(-1, *x.shape)
        columns = self.push(basis).reshape(len(weights), x.size, x.size)
        return einsum("g,gba->ab", weights, columns) / len(weights)

    def squared_orbit_distances(
        self, base: AbstractRadialKernel, x: Targets, y: Sources
    ) -> Pairs:
        embedded = lambda points: flatten(jnp.moveaxis(base.embed(points), 0, 1))
        rows = embedded(jax.vmap(self.project)(x))

        def closer(least, moved):
            distances = squared_distances(*centered(rows, embedded(moved), rows))
            return jnp.minimum(least, distances), None

        start = jnp.full((len(x), len(y)), jnp.inf, x.dtype)
        return jax.lax.scan(closer, start, self.act(y))[0]

    def project(self, point: Point) -> Point:
        return self.group.project(point)

    def _moved(
        self, how: Callable, particles: Float[Array, "n *shape"]
    ) -> Float[Array, "g n *shape"]:
        particles = jax.vmap(self.project)(particles)
        return jax.vmap(jax.vmap(how, (None, 0)), (0, None))(self.stacked, particles)


def relative_sample(group: AbstractGroup, key: Key, num: int) -> Elements:
    """Return the relative elements of a Haar sample.

    Of `num` Haar draws $h_i$ all products $h_i^{-1} h_j$ are used. A kernel averaged
    over them is positive definite like the exact one, which an average over the draws
    themselves is not.
    """
    drawn = group.sample(key, num)
    relative = jax.vmap(
        jax.vmap(lambda g, h: group.compose(group.inverse(g), h), (None, 0)), (0, None)
    )(drawn, drawn)
    merged = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), relative)
    return Elements(group, merged)
