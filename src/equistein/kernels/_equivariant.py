"""The equivariant matrix-valued kernel: with it SVGD respects the symmetry."""

from jaxtyping import Array, Float

from equistein._gate import gate
from equistein._types import Key, Point
from equistein.groups import AbstractGroup
from equistein.kernels._base import Prepared
from equistein.kernels._derived import AbstractGroupKernel
from equistein.kernels._pairs import Targets
from equistein.kernels._radial import AbstractRadialKernel
from equistein.kernels.averages._base import AbstractAverage
from equistein.kernels.averages._table import average_over


@gate
class Equivariant(AbstractGroupKernel[AbstractAverage]):
    r"""The group average that makes SVGD equivariant.

    $$K(x, y) = \int_G k(x, g y)\, R_g\, dg, \qquad K(gx, hy) = R_g K(x, y) R_h^\top$$

    SVGD with it is SVGD against the orbits of all particles,

    $$\psi(x) = \tfrac1n \sum_j \int k(x, g x_j)\, s(g x_j)
      + \nabla_2 k(x, g x_j)\, dg,$$

    so particles repel across the whole orbit. Exact for finite groups of at most 4 000
    elements: six labels, or five with signs. With an RBF base also exact for up to
    eight labels, by sums over subsets, for SO(2), O(2), SO(3) and O(3) on points of
    shape `(d,)`, and for `PointCloud` in the plane or in space with at most 120
    permutations (five like particles); in space each pair takes a quadrature, for
    small systems; with a `PeriodicRBF` for `TorusTranslations`.

    Any other compact group takes a Haar sample: then the kernel is positive definite
    and its equivariance approximate. With `num_samples` m the error of K is 1/m of
    that of a single copy, as measured on six labels, for $m^2$ times the cost. For
    more labels `Pullback` with `SumsOverLabels` is exact. The target must be invariant
    under the group.
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
    average: AbstractAverage

    def __init__(
        self,
        base: AbstractRadialKernel,
        group: AbstractGroup,
        *,
        num_samples: int | None = None,
        key: Key | None = None,
    ):
        self.average = average_over("Equivariant", base, group, num_samples, key)
        self.base = base
        self.group = group

    def force(self, targets: Targets, prepared: Prepared) -> Targets:
        return self.average.stein_force(
            self.base, targets, prepared.points, prepared.scores
        )

    def matrix(self, x: Point, y: Point) -> Float[Array, "dim dim"]:
        return self.average.matrix(self.base, x, y)
