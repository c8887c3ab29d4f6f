"""The equivariant matrix-valued kernel: with it SVGD respects the symmetry."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein._types import Key, LogDensity, Particles, Point, Scalar
from equistein.groups import AbstractGroup, check_invariance
from equistein.kernels._bandwidth import AbstractBandwidth
from equistein.kernels._base import AbstractKernel, flatten
from equistein.kernels._blocks import map_blocks
from equistein.kernels._closed_form import AbstractClosedForm
from equistein.kernels._closed_forms import closed_form
from equistein.kernels._radial import AbstractRadialKernel, RBF
from equistein.kernels._symmetrized import check_base, choose_elements, Elements


class Equivariant(AbstractKernel):
    r"""The group average that makes SVGD equivariant.

    $$K(x, y) = \int_G k(x, g y)\, R_g\, dg, \qquad K(gx, hy) = R_g K(x, y) R_h^\top$$

    SVGD with it is SVGD against the orbits of all particles,

    $$\psi(x) = \tfrac1n \sum_j \int k(x, g x_j)\, s(g x_j)
      + \nabla_2 k(x, g x_j)\, dg,$$

    so particles repel across the whole orbit. Exact for finite groups. With an RBF
    base also exact for SO(2), O(2), SO(3) and O(3) on points of shape `(d,)`, and for
    `PointCloud` in the plane or in space with at most 120 permutations (five like
    particles); in space each pair takes a quadrature, for small systems.
    Any other compact group takes a Haar sample: then the kernel is positive definite
    and its equivariance approximate. The target must be invariant under the group.
    The `Median` rule measures distances between orbits.

    Args:
        base: The radial kernel $k$; `RBF()` and the median rule by default.
        group: The symmetry of the target.
        num_samples: The number of Haar draws, of which all `num_samples**2` relative
            elements are used; None for the exact average.
        key: The key of the Haar sample.

    Raises:
        ValueError: If `base` is not radial, or the group needs a Haar sample.

    References:
        Jaini, Holdijk and Welling (2021), Example 3; Reisert and Burkhardt (2007),
        Learning Equivariant Functions with Matrix Valued Kernels.
    """

    base: AbstractRadialKernel
    group: AbstractGroup
    average: Elements | AbstractClosedForm

    def __init__(
        self,
        base: AbstractRadialKernel,
        group: AbstractGroup,
        *,
        num_samples: int | None = None,
        key: Key | None = None,
    ):
        check_base("Equivariant", base, group)
        self.base = base
        self.group = group
        closed = closed_form(group) if isinstance(base, RBF) else None
        if num_samples is None and closed is not None:
            self.average = closed
        else:
            self.average = choose_elements("Equivariant", group, num_samples, key)

    def stein_force(
        self,
        targets: Float[Array, "target *shape"],
        sources: Float[Array, "source *shape"],
        scores: Float[Array, "source *shape"],
    ) -> Float[Array, "target *shape"]:
        if isinstance(self.average, Elements):
            orbits, moved = self.average.act(sources), self.average.act(scores)
            shape = (-1, *sources.shape[1:])
            return self.base.stein_force(
                targets, orbits.reshape(shape), moved.reshape(shape)
            )
        average, length = self.average, self.base.fixed_length(sources)
        project = jax.vmap(self.group.project)
        x, y, s = (flatten(project(z)) for z in (targets, sources, scores))
        total = map_blocks(
            lambda rows: average.block_force(rows, y, s, length),
            x,
            len(y) * average.num_copies,
        )
        return (total / len(y)).reshape(targets.shape)

    def matrix(self, x: Point, y: Point) -> Float[Array, "dim dim"]:
        if isinstance(self.average, AbstractClosedForm):
            x, y = self.group.project(x), self.group.project(y)
            matrix = self.average.matrix(x, y, self.base.fixed_length(x))
            project = jax.vmap(lambda row: self.group.project(row.reshape(x.shape)))
            return flatten(project(flatten(project(matrix)).T)).T
        orbit = self.average.act(y[None])[:, 0]
        weights = jax.vmap(self.base, (None, 0))(x, orbit)
        basis = jnp.eye(x.size, dtype=x.dtype).reshape(-1, *x.shape)
        columns = self.average.act(basis).reshape(len(weights), x.size, x.size)
        return jnp.einsum("g,gba->ab", weights, columns) / len(weights)

    @property
    def rule(self) -> AbstractBandwidth | None:
        return self.base.rule

    def length(self, particles: Particles) -> Scalar:
        average = self.average
        if isinstance(average, AbstractClosedForm):
            return self.base.length_of(particles, average.squared_orbit_distances)
        return self.base.length_of(
            particles, lambda x, _: average.squared_orbit_distances(x)
        )

    def with_length(self, length: Scalar) -> "Equivariant":
        return eqx.tree_at(lambda k: k.base, self, self.base.with_length(length))

    def project(self, point: Point) -> Point:
        return self.group.project(point)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        self.group.check_shape(shape)
        if isinstance(self.average, AbstractClosedForm):
            self.average.check_shape(shape)

    def check_target(self, log_density: LogDensity, points: Particles) -> None:
        check_invariance(log_density, self.group, points)
