"""Interfaces for averages over a group, and the average over stacked elements."""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from equistein._products import einsum
from equistein._types import Key, Particles, Point, Scalar
from equistein.groups import AbstractGroup
from equistein.kernels._pairs import (
    centered,
    flatten,
    map_blocks,
    Pairs,
    SourceRows,
    Sources,
    squared_distances,
    TargetRows,
    Targets,
)
from equistein.kernels._radial import AbstractRadialKernel


class AbstractAverage(eqx.Module):
    r"""The mean $K(x, y) = \int k(x, g y)\, R_g\, dg$ of a radial kernel over a group.

    Everything lives on the group's subspace: points and scores are projected onto it.
    """

    group: eqx.AbstractVar[Any]  # of the kind that the average is known for

    @abc.abstractmethod
    def force(
        self, base: AbstractRadialKernel, targets: Targets, sources: Sources,
        scores: Sources,
    ) -> Targets:  # fmt: skip
        """Return the Stein force of K, the mean over the sources."""

    @abc.abstractmethod
    def matrix(
        self, base: AbstractRadialKernel, x: Point, y: Point
    ) -> Float[Array, "dim dim"]:
        """Return $K(x, y)$ on flattened points."""

    @abc.abstractmethod
    def squared_orbit_distances(
        self, base: AbstractRadialKernel, x: Targets, y: Sources
    ) -> Pairs:
        r"""Return $\min_g |x_i - g y_j|^2$, in the distance of the base."""

    def project(self, point: Point) -> Point:
        """Return the nearest point of the group's subspace, or raise `ValueError`."""
        return self.group.project(point)

    def rows(self, points: Particles) -> Float[Array, "particle dim"]:
        """Return the projected points, flattened."""
        return flatten(jax.vmap(self.project)(points))


class AbstractClosedForm(AbstractAverage):
    """A formula for the average of an `RBF`, of which only the bandwidth is used."""

    @property
    def num_copies(self) -> int:
        """How many terms a block holds for each pair of points: its memory."""
        return 1

    @abc.abstractmethod
    def block_sum(
        self, targets: TargetRows, sources: SourceRows, scores: SourceRows,
        bandwidth: Scalar,
    ) -> TargetRows:  # fmt: skip
        """Return the sum of the Stein terms over the sources."""

    @abc.abstractmethod
    def value(self, x: Point, y: Point, bandwidth: Scalar) -> Float[Array, "dim dim"]:
        """Return $K(x, y)$ on flattened points of the subspace."""

    def force(self, base, targets, sources, scores):
        bandwidth = base.fixed_bandwidth(sources)
        x, y, s = map(self.rows, (targets, sources, scores))
        block = lambda rows: self.block_sum(rows, y, s, bandwidth)
        total = map_blocks(block, x, len(y) * self.num_copies)
        return (total / len(y)).reshape(targets.shape)

    def matrix(self, base, x, y):
        x, y = self.project(x), self.project(y)
        matrix = self.value(x, y, base.fixed_bandwidth(x))
        project = jax.vmap(lambda row: self.project(row.reshape(x.shape)))
        return flatten(project(flatten(project(matrix)).T)).T


class AverageOverElements(AbstractAverage):
    """The mean over some elements of a group, stacked on axis 0.

    SVGD with it is SVGD against the particles' copies: the sources are expanded, never
    the targets.
    """

    group: AbstractGroup
    stacked: PyTree

    def act(self, particles: Float[Array, "n *shape"]) -> Float[Array, "g n *shape"]:
        """Return $g x$ for all elements and particles, projected."""
        return self._move(self.group.act, particles)

    def push(self, scores: Float[Array, "n *shape"]) -> Float[Array, "g n *shape"]:
        """Return the scores at all $g x$, projected."""
        return self._move(self.group.push, scores)

    def push_inverse(
        self, forces: Float[Array, "g n *shape"]
    ) -> Float[Array, "g n *shape"]:
        """Return the forces of each copy, turned back by its element."""
        inverse = jax.vmap(self.group.inverse)(self.stacked)
        move = jax.vmap(jax.vmap(self.group.push, (None, 0)), (0, 0))
        return move(inverse, forces)

    def force(self, base, targets, sources, scores):
        copies, pushed = self.act(sources), self.push(scores)
        targets, shape = jax.vmap(self.project)(targets), (-1, *sources.shape[1:])
        # Centered on the particles' mean: copies[0] are the particles (the identity).
        rows = copies.reshape(shape), pushed.reshape(shape)
        return base._force_about(copies[0], targets, *rows)

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

    def _move(
        self, how: Callable, particles: Float[Array, "n *shape"]
    ) -> Float[Array, "g n *shape"]:
        particles = jax.vmap(self.project)(particles)
        return jax.vmap(jax.vmap(how, (None, 0)), (0, None))(self.stacked, particles)


def relative_sample(group: AbstractGroup, key: Key, num: int) -> AverageOverElements:
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
    return AverageOverElements(group, merged)
