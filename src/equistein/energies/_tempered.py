"""An energy at another temperature."""

import equinox as eqx

from equistein._check_arguments import check_arguments
from equistein._numbers import check_positive
from equistein._types import Point, Scalar
from equistein.energies._base import AbstractEnergy
from equistein.groups import AbstractGroup


@check_arguments
class TemperedEnergy(AbstractEnergy):
    r"""The energy $E(x) / T$: what is sampled at the temperature $T$.

    Args:
        energy: The energy.
        temperature: The temperature $T > 0$.

    Raises:
        ValueError: If the temperature is not positive.
    """

    energy: AbstractEnergy
    temperature: float = eqx.field(converter=float)

    def __check_init__(self):
        check_positive("TemperedEnergy", temperature=self.temperature)

    def __call__(self, point: Point) -> Scalar:
        return self.energy(point) / self.temperature

    def group(self, shape: tuple[int, ...]) -> AbstractGroup:
        return self.energy.group(shape)
