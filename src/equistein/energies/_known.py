"""A density that is known, as an energy."""

from equistein._check_arguments import check_arguments
from equistein._types import LogDensity, Point, Scalar
from equistein.energies._base import AbstractEnergy, freeze
from equistein.groups import AbstractGroup


@check_arguments
class KnownEnergy(AbstractEnergy):
    r"""The energy $E(x) = -\log p(x)$ of a density that is known, such as a target's.

    Training leaves it alone. A learned energy that is added to it is its correction:
    `SummedEnergy([(1.0, KnownEnergy(target.log_density, group)), (1.0, energy)])`.

    Args:
        log_density: The log density of one point, up to a constant.
        symmetry: The group that it is invariant under.

    Raises:
        ValueError: If the density is no function, or the symmetry no group.
    """

    known: LogDensity
    symmetry: AbstractGroup

    def __init__(self, log_density: LogDensity, symmetry: AbstractGroup):
        if not callable(log_density) or not isinstance(symmetry, AbstractGroup):
            raise ValueError(
                "KnownEnergy needs `log_density`, a function of one point, and "
                f"`symmetry`, a group, but got {log_density!r} and {symmetry!r}."
            )
        self.known = log_density
        self.symmetry = symmetry

    def __call__(self, point: Point) -> Scalar:
        return -freeze(self.known)(point)

    def group(self, shape: tuple[int, ...]) -> AbstractGroup:
        self.symmetry.check_shape(shape)
        return self.symmetry
