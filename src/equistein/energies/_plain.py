"""A network made an energy."""

from equistein._gate import gate
from equistein._types import Point, Scalar
from equistein.energies._base import AbstractEnergy
from equistein.groups import AbstractGroup
from equistein.networks import AbstractNetwork


@gate
class PlainEnergy(AbstractEnergy):
    r"""The energy $E(x) = -f(x)$ of a network with one output.

    Args:
        network: The network $f$.
    """

    network: AbstractNetwork

    def __call__(self, point: Point) -> Scalar:
        return -self.network(point)

    def group(self, shape: tuple[int, ...]) -> AbstractGroup:
        return self.network.group(shape)
