"""The interface of energies."""

import abc

import equinox as eqx

from equistein._types import Point, Scalar
from equistein.groups import AbstractGroup
from equistein.kernels import AbstractKernel


class AbstractEnergy(eqx.Module):
    r"""A learned energy: $p(x) \propto e^{-E(x)}$."""

    @abc.abstractmethod
    def __call__(self, point: Point) -> Scalar:
        """Return $E(x)$."""

    @abc.abstractmethod
    def group(self, shape: tuple[int, ...]) -> AbstractGroup:
        """Return the symmetry of the energy on points of this shape."""

    @abc.abstractmethod
    def kernel(self, shape: tuple[int, ...], bandwidth: float | None) -> AbstractKernel:
        """Return the kernel to sample it with; None is the median rule."""

    def log_density(self, point: Point) -> Scalar:
        r"""Return $-E(x)$: the log density up to a constant."""
        return -self(point)
