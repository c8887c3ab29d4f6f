"""An energy averaged over a finite group."""

import jax
import jax.numpy as jnp

from equistein._types import Point, Scalar
from equistein.energies._base import AbstractEnergy
from equistein.groups import AbstractFiniteGroup
from equistein.kernels import AbstractKernel, Equivariant, RBF


class SymmetrizedEnergy(AbstractEnergy):
    r"""The mean of any energy over the orbit, $\frac1{|G|} \sum_g E(g x)$.

    Args:
        energy: The energy to make invariant.
        symmetry: A finite group.

    Raises:
        ValueError: If the group is not finite.
    """

    energy: AbstractEnergy
    symmetry: AbstractFiniteGroup

    def __init__(self, energy: AbstractEnergy, symmetry: AbstractFiniteGroup):
        if not isinstance(symmetry, AbstractFiniteGroup):
            raise ValueError(
                "SymmetrizedEnergy needs a finite `symmetry` such as Cyclic(4), but "
                f"got {symmetry}. For a continuous group take invariant features."
            )
        self.energy = energy
        self.symmetry = symmetry

    def __call__(self, point: Point) -> Scalar:
        return jnp.mean(jax.vmap(self.energy)(self.symmetry.orbit(point)))

    def group(self, shape: tuple[int, ...]) -> AbstractFiniteGroup:
        self.symmetry.check_shape(shape)
        return self.symmetry

    def kernel(self, bandwidth: float | None) -> AbstractKernel:
        return Equivariant(RBF(bandwidth), self.symmetry)
