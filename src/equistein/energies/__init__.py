"""Networks made energies."""

from equistein.energies._base import AbstractEnergy as AbstractEnergy
from equistein.energies._build import energy_for as energy_for
from equistein.energies._feature_energy import FeatureEnergy as FeatureEnergy
from equistein.energies._symmetrized_energy import (
    SymmetrizedEnergy as SymmetrizedEnergy,
)
