"""Group averages of kernels: equivariant, and the paper's invariant one."""

from typing import Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein._check_arguments import check_arguments
from equistein._types import Key, LogDensity, Particles, Point, Scalar
from equistein.groups import AbstractGroup
from equistein.kernels._bandwidth import SquaredDistances
from equistein.kernels._base import AbstractScalarKernel, check_symmetry, Prepared
from equistein.kernels._pairs import Targets
from equistein.kernels._radial import AbstractDerivedKernel, AbstractRadialKernel
from equistein.kernels.averages._base import AbstractAverage, AverageOverElements
from equistein.kernels.averages._choose import average_over, average_over_elements

Average = TypeVar("Average", bound=AbstractAverage)


class AbstractGroupKernel(AbstractDerivedKernel, Generic[Average]):
    """A radial kernel averaged over a group; distances are between orbits."""

    group: eqx.AbstractVar[AbstractGroup]
    average: eqx.AbstractVar[Average]

    def project(self, point: Point) -> Point:
        self.group.check_shape(point.shape)
        return self.average.project(point)

    def check(self, log_density: LogDensity, points: Particles) -> None:
        check_symmetry(self, self.group, log_density, points)
        if type(self.base).embed is not AbstractRadialKernel.embed:
            _check_distances(self.base, self.group, points[0], points[-1])

    def _squared_distances(self, particles: Particles) -> SquaredDistances:
        return self.average.squared_orbit_distances(self.base, particles, particles)


def _check_distances(
    base: AbstractRadialKernel, group: AbstractGroup, x: Point, y: Point
) -> None:
    """Raise unless k(gx, gy) = k(x, y): a rotation tilts the axes of a periodic box."""

    def distance(g):
        gap = base.embed(group.act(g, x)) - base.embed(group.act(g, y))
        return jnp.linalg.norm(gap)

    distances = jax.vmap(distance)(group.sample(jr.key(0), 16))
    if not np.ptp(distances) <= 1e-3 * np.max(distances):
        raise ValueError(
            f"The distances of {base} change under {group}, so its average is not "
            "equivariant. Take RBF, or the group of translations or permutations that "
            "the periods have."
        )


@check_arguments
class Equivariant(AbstractGroupKernel[AbstractAverage]):
    r"""The group average that makes SVGD equivariant.

    $$K(x, y) = \int_G k(x, g y)\, R_g\, dg, \qquad K(gx, hy) = R_g K(x, y) R_h^\top$$

    With it each particle interacts with the orbits of all particles,

    $$\psi(x) = \tfrac1n \sum_j \int k(x, g x_j)\, s(g x_j)
      + \nabla_2 k(x, g x_j)\, dg,$$

    Exact for finite groups of at most 4 000 elements: `Permutations` of six labels,
    `SignedPermutations` of five. With an RBF base exact for up to eight labels, for
    SO(2), O(2), SO(3) and O(3) on points of shape `(d,)`, and for `PointCloud` in the
    plane or in space with at most 120 permutations (five like particles; in space by a
    quadrature for each pair); with a `PeriodicRBF` for `TorusTranslations`.

    Other compact groups need a Haar sample: then the kernel is positive definite and
    its equivariance approximate, with an error of order 1/m for `num_samples` m at
    $m^2$ times the cost. For more labels `Pullback` with `RandomFeatures` is exact. The
    target must be invariant under the group. The `Median` rule measures distances
    between orbits.

    Args:
        base: The radial kernel $k$, such as `RBF()`, with the median rule.
        group: The symmetry of the target.
        num_samples: The number of Haar draws, of which all `num_samples**2` relative
            elements are used; None for the exact average.
        key: The key of the Haar sample.

    References:
        Jaini, Holdijk and Welling (2021), Example 3; Reisert and Burkhardt (2007),
        Learning Equivariant Functions with Matrix Valued Kernels.
    """

    base: AbstractRadialKernel
    group: AbstractGroup
    average: AbstractAverage

    def __init__(
        self,
        base: AbstractRadialKernel,
        group: AbstractGroup,
        *,
        num_samples: int | None = None,
        key: Key | None = None,
    ):
        self.average = average_over(base, group, num_samples, key)
        self.base = base
        self.group = group

    def force(self, targets: Targets, prepared: Prepared) -> Targets:
        return self.average.force(self.base, targets, prepared.points, prepared.scores)

    def matrix(self, x: Point, y: Point) -> Float[Array, "dim dim"]:
        return self.average.matrix(self.base, x, y)


@check_arguments
class Invariant(AbstractGroupKernel[AverageOverElements], AbstractScalarKernel):
    r"""The paper's average of a scalar kernel, which does not make SVGD equivariant.

    $$k_G(x, y) = \int_G k(x, g y)\, dg$$

    It is invariant in each argument, so that $\psi(g x) = \psi(x)$, where an
    equivariant force has $\psi(g x) = R_g \psi(x)$, and against an invariant set of
    particles the scores cancel: every invariant distribution is a fixed point, whatever
    the target. It is here to reproduce the paper; sample with `Equivariant`, which has
    the same arguments.

    References:
        Jaini, Holdijk and Welling (2021), Examples 1 and 2.
    """

    base: AbstractRadialKernel
    group: AbstractGroup
    average: AverageOverElements

    def __init__(
        self,
        base: AbstractRadialKernel,
        group: AbstractGroup,
        *,
        num_samples: int | None = None,
        key: Key | None = None,
    ):
        self.average = average_over_elements("Invariant", group, num_samples, key)
        self.base = base
        self.group = group

    def __call__(self, x: Point, y: Point) -> Scalar:
        orbit = self.average.act(y[None])[:, 0]
        return jnp.mean(jax.vmap(self.base, (None, 0))(self.project(x), orbit))

    def force(self, targets: Targets, prepared: Prepared) -> Targets:
        targets = jax.vmap(self.project)(targets)
        orbits = self.average.act(prepared.points)
        moved = self.average.push(prepared.scores)
        forces = jax.vmap(self.base.stein_force, (None, 0, 0))(targets, orbits, moved)
        # grad_y k(x, g y) = R_g^T grad_2 k: the force of each copy is rotated back.
        return jnp.mean(self.average.push_inverse(forces), axis=0)

    def matrix(self, x: Point, y: Point) -> Float[Array, "dim dim"]:
        basis = jnp.eye(x.size, dtype=x.dtype).reshape(-1, *x.shape)
        identity = jax.vmap(self.project)(basis).reshape(x.size, x.size)
        return self(x, y) * identity
