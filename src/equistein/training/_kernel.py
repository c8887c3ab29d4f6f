"""The kernel that the settings name."""

from equistein.energies import AbstractEnergy
from equistein.kernels import AbstractKernel, RBF
from equistein.training._config import FitConfig


def choose_kernel(
    energy: AbstractEnergy, config: FitConfig, shape: tuple[int, ...]
) -> AbstractKernel:
    """Return the kernel that the settings name."""
    if config.negatives == "esvgd":
        return energy.kernel(shape, config.bandwidth)
    return RBF(config.bandwidth)
