"""Energies that are linear in features, fitted by one solve."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from equistein._check_arguments import accept_integer_key
from equistein._types import AnyKey, Key, Particles
from equistein.energies import KnownEnergy, LinearEnergy, PairWall, TemperedEnergy
from equistein.features import (
    AbstractFeatures,
    Bonded,
    Concatenated,
    PairBasis,
    Quadratic,
    Radius,
    RandomFeatures,
    TripletBasis,
)
from equistein.groups import (
    AbstractCloud,
    AbstractGroup,
    Molecule,
    Orthogonal,
    SpecialOrthogonal,
)
from equistein.models._model import with_about
from equistein.models._settings import LinearSettings
from equistein.training import fit_linear, Fitted

_HEAT = 4.0  # the temperature of the normal distribution that waves are added to
_COPIES = 8  # of points, to find the range of blurred ones
_MOST_TRIPLETS = 20  # atoms of a molecule whose angles are features


def _wall(group: AbstractCloud, pairs: PairBasis, points: np.ndarray) -> PairWall:
    """Return a wall by pairs of species or, of a molecule, by what its bonds tell."""
    kinds = pairs.kind_of_pairs()
    if isinstance(group, Molecule):
        pairs = PairBasis(range(len(group.species)), points)
        kinds = group.orbits(np.column_stack(np.triu_indices(len(group.species), 1)))
    own = pairs.kind_of_pairs()
    least, most = np.full(len(own), np.inf), np.zeros(len(own))
    np.minimum.at(least, kinds, np.array(pairs.least)[own])
    np.maximum.at(most, kinds, np.array(pairs.most)[own])
    least, most = least[kinds], most[kinds]
    return PairWall(pairs, tuple(least.tolist()), tuple(most.tolist()))


@dataclasses.dataclass(frozen=True, kw_only=True)
class LinearModel:
    """A linear energy, how it is fitted and sampled, forces in kT, and `about`."""

    energy: LinearEnergy
    settings: LinearSettings
    batch_size: int
    forces: Any = None
    about: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    num_epochs: int = 1
    epoch_batches: int = 1

    @accept_integer_key
    def fit(
        self, key: AnyKey, data: Any, labels: Any = None, *, mesh: Any = None,
        progress: bool = False, **options: Any,
    ) -> Fitted:  # fmt: skip
        """Fit the energy as `es.fit_linear` does; no other `options` are looked at."""
        del options
        fitted = fit_linear(
            key, self.energy, data, labels=labels, forces=self.forces, mesh=mesh,
            noise=self.settings.noise, ridge=self.settings.ridge, progress=progress,
        )  # fmt: skip
        steps, at_once = self.settings.sample_steps, self.settings.sample_at_once
        made: Any = fitted.generator
        generator = dataclasses.replace(made, num_steps=steps, num_at_once=at_once)
        return with_about(dataclasses.replace(fitted, generator=generator), self.about)

    @accept_integer_key
    def check(self, key: Key, data: Particles, labels: Any = None) -> None:
        """Raise `ValueError` if the data do not fit."""
        if self.forces is not None and self.settings.noise is not None:
            raise ValueError("`noise` blurs the points, whose forces are then unknown.")
        self.energy.group(data.shape[1:]).check_shape(data.shape[1:])


def linear_model(
    group: AbstractGroup, data: Particles, settings: LinearSettings, has_atoms: bool
) -> LinearModel:
    """Return an energy of pairs, and of bonds or of small molecules; or of waves.

    Waves, for other groups, are added to a normal distribution twice as wide as data.
    """
    group.check_shape(data.shape[1:])
    if not isinstance(group, AbstractCloud):
        on_sphere = isinstance(group, Orthogonal | SpecialOrthogonal)
        symmetry = Radius() if on_sphere and data.ndim == 2 else group
        waves = RandomFeatures(symmetry, settings.num_waves, data)
        normal = fit_linear(0, LinearEnergy(Quadratic(group)), data, progress=False)
        energy = LinearEnergy(waves, TemperedEnergy(normal.energy, _HEAT))
        return LinearModel(energy=energy, settings=settings, batch_size=len(data))
    if not (group.reflections or isinstance(group, Molecule)):
        raise ValueError("`network` linear needs a `group` with reflections.")
    few = 3 <= len(group.species) <= _MOST_TRIPLETS
    points = np.asarray(data)
    if settings.noise is not None:  # the ranges are those of blurred points
        drawn = np.random.default_rng(0).normal(size=(_COPIES, *points.shape))
        points = (points + settings.noise * drawn).reshape(-1, *points.shape[1:])
    # Pairs of elements, beside the bonds: each two kinds of atoms would be too many.
    species = group.atomic_numbers if isinstance(group, Molecule) else group.species
    pairs = PairBasis(species, points, num_gaussians=settings.num_gaussians)
    features: AbstractFeatures = pairs
    if isinstance(group, Molecule):
        bonded = Bonded(
            group.bonds, group.atomic_numbers, symmetric=True,
            reflections=group.reflections,
        )  # fmt: skip
        features = Concatenated(pairs, bonded)
    elif few and has_atoms:
        features = Concatenated(pairs, TripletBasis(group.species, points))
    energy = LinearEnergy(features, KnownEnergy(_wall(group, pairs, points), group))
    return LinearModel(energy=energy, settings=settings, batch_size=len(data))
