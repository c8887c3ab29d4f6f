"""Force fields of OpenMM as functions of JAX."""

from equistein.bridges.openmm._force_field import (
    ForceField as ForceField,
    from_openmm as from_openmm,
)
