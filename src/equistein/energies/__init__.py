"""Networks made energies."""

from equistein.energies._base import AbstractEnergy as AbstractEnergy
from equistein.energies._build import (
    energy_for as energy_for,
    graph_energy_for as graph_energy_for,
)
from equistein.energies._formulas import (
    formulas_energy_for as formulas_energy_for,
    FormulasEnergy as FormulasEnergy,
)
from equistein.energies._joint import (
    ConditionalEnergy as ConditionalEnergy,
    JointEnergy as JointEnergy,
)
from equistein.energies._kernel import kernel_for as kernel_for
from equistein.energies._least import LeastNoise as LeastNoise
from equistein.energies._noise import NoiseEnergy as NoiseEnergy
from equistein.energies._outliers import (
    outlier_scores as outlier_scores,
    typicality as typicality,
)
from equistein.energies._plain import PlainEnergy as PlainEnergy
from equistein.energies._tempered import TemperedEnergy as TemperedEnergy
