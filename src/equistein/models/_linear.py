"""Energies of clouds that are linear in features, fitted by one solve."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from equistein._check_arguments import accept_integer_key
from equistein._types import AnyKey, Key, Particles
from equistein.energies import KnownEnergy, LinearEnergy
from equistein.features import (
    AbstractFeatures,
    Concatenated,
    PairBasis,
    PairWall,
    TripletBasis,
)
from equistein.groups import AbstractGroup, PointCloud
from equistein.models._settings import LinearSettings
from equistein.training import fit_linear, Fitted

_COPIES = 8  # of points, to find the range of blurred ones
_MOST_TRIPLETS = 20  # atoms of a molecule whose angles are features


@dataclasses.dataclass(frozen=True, kw_only=True)
class LinearModel:
    """A linear energy with all that it takes to fit and sample it.

    Attributes:
        energy: The energy, without coefficients.
        settings: How it is fitted and sampled.
        forces: Of each point, in kT over the unit of length, or None.
        about: What is saved with the learned density, such as the atomic numbers.
    """

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
        return dataclasses.replace(fitted, generator=generator, about=dict(self.about))

    @accept_integer_key
    def check(self, key: Key, data: Particles, labels: Any = None) -> None:
        """Raise `ValueError` if the data do not fit."""
        if self.forces is not None and self.settings.noise is not None:
            raise ValueError("`noise` blurs the points, whose forces are then unknown.")
        self.energy.group(data.shape[1:]).check_shape(data.shape[1:])


def linear_model(
    group: AbstractGroup, data: Particles, settings: LinearSettings, has_atoms: bool
) -> LinearModel:
    """Return an energy of pairs and, of small molecules, angles."""
    if not isinstance(group, PointCloud) or not group.reflections:
        raise ValueError(
            f"`network` linear needs a PointCloud with reflections, but got {group}: "
            "give es.fit_linear other features."
        )
    group.check_shape(data.shape[1:])
    few = 3 <= len(group.species) <= _MOST_TRIPLETS
    points = np.asarray(data)
    if settings.noise is not None:  # the ranges are those of blurred points
        drawn = np.random.default_rng(0).normal(size=(_COPIES, *points.shape))
        points = (points + settings.noise * drawn).reshape(-1, *points.shape[1:])
    pairs = PairBasis(group.species, points, num_gaussians=settings.num_gaussians)
    features: AbstractFeatures = pairs
    if few and (has_atoms if settings.angles is None else settings.angles):
        features = Concatenated(pairs, TripletBasis(group.species, points))
    energy = LinearEnergy(features, KnownEnergy(PairWall(pairs), group))
    return LinearModel(energy=energy, settings=settings, batch_size=len(data))
