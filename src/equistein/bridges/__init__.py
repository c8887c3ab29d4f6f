"""Densities, data and models of other libraries."""

from equistein.bridges._ase import (
    energy_calculator as energy_calculator,
    from_ase as from_ase,
    to_ase as to_ase,
)
from equistein.bridges._energy_forces import (
    BOLTZMANN as BOLTZMANN,
    EnergyForces as EnergyForces,
    EvaluationError as EvaluationError,
    from_energy_forces as from_energy_forces,
)
from equistein.bridges.openmm import (
    ForceField as ForceField,
    from_openmm as from_openmm,
)
