"""Energies of molecules of several formulas, by one network."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from equistein._gate import gate
from equistein._numbers import is_integer
from equistein._types import Point, Scalar
from equistein.diffusion._noise_energy import AbstractNoiseEnergy, NoiseEnergy
from equistein.groups import Trivial
from equistein.networks import EGNN


@gate
class MaskedNoiseEnergy(AbstractNoiseEnergy):
    """The energies of molecules of several formulas, which share a graph network.

    A point, the `positions`, has as many rows as the largest formula has atoms; rows
    that a formula leaves over are zero, and its `mask` tells them. Which formula a
    molecule has is its label in training. There is no energy without a formula: take
    `energy.given(number)`.

    Args:
        energy: The energies of atoms of any kind.
        formulas: The kinds of the atoms of each formula, by number.
        scale: The root mean square coordinate of the data.
        sigma_max: The largest noise.

    Raises:
        ValueError: If the network of the energy does not take atoms of any kind.
    """

    energy: NoiseEnergy
    kinds: Int[Array, "formula atom"]
    formulas: tuple[tuple[int, ...], ...]
    scale: Scalar
    sigma_min: Scalar
    sigma_max: Scalar

    def __init__(
        self,
        energy: NoiseEnergy,
        formulas: Sequence[tuple[int, ...]],
        scale: Scalar,
        sigma_max: Scalar,
    ):
        if not isinstance(energy.network, EGNN):
            raise ValueError(
                "MaskedNoiseEnergy needs an `energy` on an EGNN, which takes atoms of "
                f"any kind, but got one on {type(energy.network).__name__}."
            )
        self.energy = eqx.tree_at(
            lambda e: (e.scale, e.sigma_max), energy, (scale, sigma_max)
        )
        self.formulas = tuple(tuple(kinds) for kinds in formulas)
        num = max(map(len, formulas))
        rows = [[*kinds, *[-1] * (num - len(kinds))] for kinds in formulas]
        self.kinds = jnp.array(rows)
        self.scale = scale
        self.sigma_min = energy.sigma_min
        self.sigma_max = sigma_max

    @property
    def mask(self) -> Bool[Array, "formula atom"]:
        """Which rows of a point hold an atom, for each formula."""
        return self.kinds >= 0

    def at(
        self, noise: Scalar | float, label: Int[Array, ""] | None = None
    ) -> NoiseEnergy:
        """Return the energy of one formula, for points with rows left over."""
        return eqx.tree_at(
            lambda energy: (energy.network.kinds, energy.sigma_min),
            self.energy,
            (
                self.kinds[self._checked(label)],
                jnp.asarray(noise, self.sigma_min.dtype),
            ),
        )

    def given(self, label: int | np.integer) -> NoiseEnergy:
        """Return the energies of one formula, for points without rows left over.

        Raises:
            ValueError: If there is no formula of this number.
        """
        num = len(self.formulas)
        if not is_integer(label) or not 0 <= label < num:
            raise ValueError(
                f"`label` must be the number of a formula, from 0 to {num - 1}, but "
                f"got {label!r}."
            )
        network = self.energy.network
        assert isinstance(network, EGNN)  # as the constructor saw to
        network = network.of(self.formulas[int(label)])
        return eqx.tree_at(lambda energy: energy.network, self.energy, network)

    def check_labels(self, labels: Any) -> None:
        numbers, num = np.asarray(self._checked(labels)), len(self.formulas)
        whole = np.issubdtype(numbers.dtype, np.integer)
        if not whole or (numbers < 0).any() or (numbers >= num).any():
            raise ValueError(
                "`labels` must be the number of the formula of every molecule, from 0 "
                f"to {num - 1}: energies of several formulas learn none without it."
            )

    def project(self, point: Point, label: Int[Array, ""] | None = None) -> Point:
        return self.at(self.sigma_min, label).project(point)

    def fraction_present(self, label: Int[Array, ""] | None = None) -> Scalar:
        mask = self.mask[self._checked(label)]
        return jnp.mean(mask.astype(self.scale.dtype))

    def group(self, shape: tuple[int, ...]) -> Trivial:
        """Return no symmetry: which one there is depends on the formula."""
        return Trivial()

    def _checked(self, label: Any) -> Any:
        if label is None:
            raise ValueError(
                "`labels` are missing: energies of several formulas need the number of "
                "the formula of each molecule."
            )
        return label
