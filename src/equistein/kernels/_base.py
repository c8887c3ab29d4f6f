"""Interfaces for kernels, which turn scores into Stein forces."""

import abc
import dataclasses
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PyTree

from equistein._check_arguments import check_arguments
from equistein._products import matmul
from equistein._types import LogDensity, Particles, Point, Scalar
from equistein.groups import AbstractGroup, check_invariance
from equistein.kernels._bandwidth import AbstractBandwidth, Bandwidth, SquaredDistances
from equistein.kernels._pairs import (
    centered,
    flatten,
    map_blocks,
    Sources,
    squared_distances,
    Targets,
)

_NUM_ELEMENTS = 16  # of a group, that a custom kernel is checked with
_ASYMMETRY = 1e-2


class Prepared(eqx.Module):
    """Sources as `force` takes them: arrays with one row for each source."""

    points: Sources
    scores: Sources


class AbstractKernel(eqx.Module):
    r"""A positive definite kernel, scalar or matrix-valued.

    SVGD asks it for the Stein force on targets x from sources y with scores s,

    $$\psi(x) = \frac1m \sum_j [K(x, y_j)\, s_j + \mathrm{div}_{y_j} K(x, y_j)],$$

    in two steps, which several devices share: `prepare` computes what depends on
    the sources alone, and `force` sums their contributions. A field
    `bandwidth` may hold a rule, which SVGD evaluates on the particles.

    Attributes:
        bandwidth: A length, or a rule for it; 1 for a kernel that has none.
        group: The group that a custom kernel is equivariant under, None without one.
    """

    # Read of kernels without such a field; a subclass's field has it as default.
    bandwidth = 1.0
    group = None

    @abc.abstractmethod
    def force(self, targets: Targets, prepared: PyTree) -> Targets:
        r"""Return $\psi$ at each target, the mean over the prepared sources."""

    @abc.abstractmethod
    def matrix(self, x: Point, y: Point) -> Float[Array, "dim dim"]:
        """Return $K(x, y)$ on flattened points; $k(x, y) I$ for a scalar kernel."""

    def prepare(self, sources: Sources, scores: Sources) -> PyTree:
        """Return arrays with one row for each source, which `force` takes."""
        return Prepared(sources, scores)

    def stein_force(
        self, targets: Targets, sources: Sources, scores: Sources
    ) -> Targets:
        r"""Return $\psi$ at each target: `prepare`, then `force`."""
        return self.force(targets, self.prepare(sources, scores))

    def with_bandwidth(self, bandwidth: Bandwidth) -> "AbstractKernel":
        """Return this kernel with another bandwidth, or itself where it has none."""
        if all(field.name != "bandwidth" for field in dataclasses.fields(self)):
            return self
        return eqx.tree_at(lambda kernel: kernel.bandwidth, self, bandwidth)

    def project(self, point: Point) -> Point:
        """Return the nearest point of the subspace the particles live on.

        Raises `ValueError` if the kernel is not defined on points of this shape.
        """
        return point

    def check(self, log_density: LogDensity, points: Particles) -> None:
        """Raise `InvarianceError` if the density lacks the kernel's symmetry.

        And raise `ValueError` if a custom kernel with a `group` lacks it itself.
        """
        if self.group is not None:
            check_symmetry(self, self.group, log_density, points)

    def _squared_distances(self, particles: Particles) -> SquaredDistances:
        """Return the distances that a bandwidth rule measures."""
        rows = flatten(particles)
        return squared_distances(*centered(rows, rows, rows))


class AbstractScalarKernel(AbstractKernel):
    r"""A real-valued kernel: $K(x, y) = k(x, y) I$.

    A custom kernel needs only `__call__`. The default force differentiates it pair by
    pair, $k(x, y_j)\, s_j + \nabla_{y_j} k(x, y_j)$, which is several times slower
    than a sum written for the kernel.
    """

    @abc.abstractmethod
    def __call__(self, x: Point, y: Point) -> Scalar:
        """Return $k(x, y)$."""

    def force(self, targets: Targets, prepared: Prepared) -> Targets:
        return pairwise_force(self.__call__, targets, prepared.points, prepared.scores)

    def matrix(self, x: Point, y: Point) -> Float[Array, "dim dim"]:
        return self(x, y) * jnp.eye(x.size, dtype=x.dtype)


def pairwise_force(
    kernel: Callable[[Point, Point], Scalar], targets: Targets, sources: Sources,
    scores: Sources,
) -> Targets:  # fmt: skip
    r"""Return the Stein force of $k(x, y) I$, by the derivative of each pair."""

    def term(x, y, score):
        value, slope = jax.value_and_grad(kernel, argnums=1)(x, y)
        return value * score + slope

    def on_target(row):
        x = row.reshape(targets.shape[1:])
        return jnp.mean(jax.vmap(term, (None, 0, 0))(x, sources, scores), axis=0)

    rows = flatten(targets)
    block = lambda rows: flatten(jax.vmap(on_target)(rows))
    force = map_blocks(block, rows, len(sources) * rows.shape[1])
    return force.reshape(targets.shape)


def check_symmetry(
    kernel: AbstractKernel,
    group: AbstractGroup,
    log_density: LogDensity,
    points: Particles,
) -> None:
    """Raise unless a density is invariant and a custom class of kernels equivariant."""
    check_invariance(log_density, group, points)
    if not type(kernel).__module__.startswith("equistein."):
        error = float(_asymmetry(kernel, group, points))
        if not error <= _ASYMMETRY:
            raise ValueError(
                f"{kernel} is not equivariant under {group}: the matrices K(g x, y) "
                f"and R_g K(x, y) differ by {error:.2g} of their size, so SVGD is "
                "not equivariant. Correct `matrix`, or leave the group out."
            )


@eqx.filter_jit
def _asymmetry(
    kernel: AbstractKernel, group: AbstractGroup, points: Particles
) -> Scalar:
    """Return the largest difference of K(g x, y) and R_g K(x, y), relative to K."""
    kernel = kernel.with_bandwidth(measured_bandwidth(kernel, points))
    x = group.project(points[0])
    column = jnp.arange(x.size, dtype=x.dtype) + 1

    def product(point):
        return matmul(kernel.matrix(point, x), column).reshape(x.shape)

    def error(g):
        return jnp.max(jnp.abs(product(group.act(g, x)) - group.push(g, product(x))))

    errors = jax.vmap(error)(group.sample(jr.key(0), _NUM_ELEMENTS))
    return jnp.max(errors) / jnp.max(jnp.abs(product(x)))


@check_arguments
def measured_bandwidth(kernel: AbstractKernel, particles: Particles) -> Scalar:
    """Return a kernel's bandwidth, or what its rule gives for these particles."""
    rule = kernel.bandwidth
    if not isinstance(rule, AbstractBandwidth):
        return jnp.asarray(rule, particles.dtype)
    some = particles[:: -(-len(particles) // rule.max_particles)]
    return rule(kernel._squared_distances(some)).astype(particles.dtype)
