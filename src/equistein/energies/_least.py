"""The least noisy of the energies of a `NoiseEnergy`, alone."""

from equistein._types import Point, Scalar
from equistein.energies._base import AbstractEnergy
from equistein.energies._noise import NoiseEnergy
from equistein.groups import AbstractGroup
from equistein.kernels import AbstractKernel


class LeastNoise(AbstractEnergy):
    r"""The energy $E_{\sigma_{min}}(x)$ of a graph network at its least noise.

    It is one energy as any other: persistent particles of contrastive divergence live
    on it without annealing, as in the paper. It grows with $|x|^2$, so that particles
    cannot drift apart.

    Args:
        energy: The energies of all levels; none but the last is used.
    """

    energy: NoiseEnergy

    def __call__(self, point: Point) -> Scalar:
        return self.energy(point)

    def group(self, shape: tuple[int, ...]) -> AbstractGroup:
        return self.energy.group(shape)

    def kernel(self, shape: tuple[int, ...], bandwidth: float | None) -> AbstractKernel:
        return self.energy.kernel(shape, bandwidth)
