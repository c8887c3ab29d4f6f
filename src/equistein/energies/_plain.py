"""An energy made from a network."""

from equistein._check_arguments import check_arguments
from equistein._types import Point, Scalar
from equistein.energies._base import AbstractEnergy
from equistein.groups import AbstractGroup
from equistein.networks import AbstractNetwork


@check_arguments
class PlainEnergy(AbstractEnergy):
    r"""The energy $E(x) = -f(x)$ of a network with one output.

    Args:
        network: The network $f$.

    Raises:
        ValueError: If the value of the network at a point is not one number.
    """

    network: AbstractNetwork

    def __call__(self, point: Point) -> Scalar:
        value = self.network(point)
        if value.shape != ():
            raise ValueError(
                "`PlainEnergy` needs `network`, a function with one number as its "
                f"value, but of a point of shape {point.shape} it is of shape "
                f"{value.shape}: sum it, or take `JointEnergy` for a value of each "
                "class."
            )
        return -value

    def group(self, shape: tuple[int, ...]) -> AbstractGroup:
        return self.network.group(shape)
