"""A network made an energy."""

from equistein._types import Point, Scalar
from equistein.energies._base import AbstractEnergy
from equistein.energies._kernel import kernel_for
from equistein.groups import AbstractGroup
from equistein.kernels import AbstractKernel
from equistein.networks import AbstractNetwork


class PlainEnergy(AbstractEnergy):
    """The energy $E(x) = -f(x)$ of a network with one output.

    Args:
        network: The network $f$.
    """

    network: AbstractNetwork

    def __call__(self, point: Point) -> Scalar:
        return -self.network(point)

    def group(self, shape: tuple[int, ...]) -> AbstractGroup:
        return self.network.group(shape)

    def kernel(self, shape: tuple[int, ...], bandwidth: float | None) -> AbstractKernel:
        return kernel_for(self.network, shape, bandwidth)
