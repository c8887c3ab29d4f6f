"""What an average over a group offers the kernel that takes it."""

import abc

import equinox as eqx
import jax
from jaxtyping import Array, Float

from equistein._types import Particles, Point
from equistein.kernels._pairs import flatten, Pairs, Sources, Targets
from equistein.kernels._radial import AbstractRadialKernel


class AbstractAverage(eqx.Module):
    r"""The mean $K(x, y) = \int k(x, g y)\, R_g\, dg$ of a radial kernel over a group.

    Everything lives on the group's subspace: points and scores are projected onto it.
    """

    @abc.abstractmethod
    def stein_force(
        self,
        base: AbstractRadialKernel,
        targets: Targets,
        sources: Sources,
        scores: Sources,
    ) -> Targets:
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

    @abc.abstractmethod
    def project(self, point: Point) -> Point:
        """Return the nearest point of the group's subspace.

        Raises:
            ValueError: If the average is not known for points of this shape.
        """

    def rows(self, points: Particles) -> Float[Array, "particle dim"]:
        """Return the projected points, flattened."""
        return flatten(jax.vmap(self.project)(points))
