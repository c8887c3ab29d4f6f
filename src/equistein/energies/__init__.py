"""Networks made energies."""

from equistein.energies._base import (
    AbstractEnergy as AbstractEnergy,
    Energy as Energy,
    Evaluation as Evaluation,
    freeze as freeze,
)
from equistein.energies._joint import (
    ConditionalEnergy as ConditionalEnergy,
    JointEnergy as JointEnergy,
)
from equistein.energies._known import KnownEnergy as KnownEnergy
from equistein.energies._linear import LinearEnergy as LinearEnergy
from equistein.energies._linear_data import LinearData as LinearData
from equistein.energies._normal_equations import (
    LinearSolution as LinearSolution,
    solve_linear as solve_linear,
)
from equistein.energies._plain import PlainEnergy as PlainEnergy
from equistein.energies._summed import SummedEnergy as SummedEnergy
from equistein.energies._tempered import TemperedEnergy as TemperedEnergy
