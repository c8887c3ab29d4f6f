"""Samples of one hand, from an energy that has mirror images as equal."""

import equinox as eqx
import numpy as np

from equistein._types import Key, Particles, Scalar
from equistein.energies import AbstractEnergy
from equistein.molecules import hands
from equistein.training import AbstractGenerator, Condition, parts_of


class OneHanded(AbstractGenerator):
    r"""Samples of molecules, of which mirror images of the data are reflected.

    Where $E(-x) = E(x)$, that is exactly the density restricted to one hand. Molecules
    of another kind are left as they are.

    Args:
        inner: What draws molecules of both hands.
        species: The element of each atom.
        pair: The `stereo_smiles` of the data.
        num_at_once: The number drawn together; None is that of `inner`.
    """

    inner: AbstractGenerator
    species: tuple[str, ...] = eqx.field(static=True)
    pair: tuple[str, str] = eqx.field(static=True)
    num_at_once: int

    def __init__(
        self,
        inner: AbstractGenerator,
        species: tuple[str, ...],
        pair: tuple[str, str],
        num_at_once: int | None = None,
    ):
        self.inner, self.species, self.pair = inner, species, pair
        self.num_at_once = num_at_once or inner.num_at_once

    def draw(
        self, key: Key, energy: AbstractEnergy, num: int, condition: Condition
    ) -> Particles:
        points = self.inner.draw(key, energy, num, condition)
        if parts_of(condition)[1] is not None:  # held atoms may not be reflected
            return points
        signs = hands(self.species, np.asarray(points), self.pair)
        mirrored = np.where(signs == -1, -1, 1).astype(points.dtype)
        return points * mirrored[:, None, None]

    def scale_steps(self, factor: Scalar) -> AbstractGenerator:
        inner = self.inner.scale_steps(factor)
        return OneHanded(inner, self.species, self.pair)
