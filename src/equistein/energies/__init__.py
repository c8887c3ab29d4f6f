"""Networks and features made energies, and the solve of linear ones."""

from equistein.energies._base import (
    AbstractEnergy as AbstractEnergy,
    Energy as Energy,
    Evaluation as Evaluation,
    freeze as freeze,
    values_at as values_at,
)
from equistein.energies._composed import (
    KnownEnergy as KnownEnergy,
    PlainEnergy as PlainEnergy,
    SummedEnergy as SummedEnergy,
    TemperedEnergy as TemperedEnergy,
)
from equistein.energies._joint import (
    check_class as check_class,
    check_labels as check_labels,
    ConditionalEnergy as ConditionalEnergy,
    count_classes as count_classes,
    JointEnergy as JointEnergy,
)
from equistein.energies._linear import (
    LinearEnergy as LinearEnergy,
    PairWall as PairWall,
)
from equistein.energies._normal_equations import (
    LinearSolution as LinearSolution,
    Rows as Rows,
    solve_linear as solve_linear,
)
