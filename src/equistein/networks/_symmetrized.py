"""A network averaged over a finite group."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein._gate import gate
from equistein._types import Point
from equistein.groups import AbstractGroup
from equistein.networks._base import AbstractNetwork


@gate
class Symmetrized(AbstractNetwork):
    r"""The mean of any network over the orbit, $\frac1{|G|} \sum_g f(g x)$.

    Args:
        network: The network to make invariant.
        symmetry: A finite group.

    Raises:
        ValueError: If the group is not finite.
    """

    network: AbstractNetwork
    symmetry: AbstractGroup

    def __check_init__(self):
        if self.symmetry.order is None:
            raise ValueError(
                "Symmetrized needs a finite `symmetry` such as Cyclic(4), but got "
                f"{self.symmetry}. For a continuous group take invariant features."
            )

    def __call__(self, point: Point) -> Float[Array, "*class"]:
        return jnp.mean(jax.vmap(self.network)(self.symmetry.orbit(point)), axis=0)

    @property
    def num_outputs(self) -> int | None:
        return self.network.num_outputs

    def group(self, shape: tuple[int, ...]) -> AbstractGroup:
        self.symmetry.check_shape(shape)
        return self.symmetry
