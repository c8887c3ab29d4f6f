"""Analytic densities with a declared symmetry and a sampler to compare with."""

from equistein.targets._base import AbstractTarget as AbstractTarget
from equistein.targets._double_well import DoubleWell as DoubleWell
from equistein.targets._hard_mixture import HardMixture as HardMixture
from equistein.targets._lennard_jones import LennardJones as LennardJones
from equistein.targets._lennard_jones_fluid import (
    LennardJonesFluid as LennardJonesFluid,
)
from equistein.targets._particle_system import (
    AbstractParticleSystem as AbstractParticleSystem,
    find_minima as find_minima,
    Minima as Minima,
)
from equistein.targets._rotated_gaussians import RotatedGaussians as RotatedGaussians
from equistein.targets._shells import Shells as Shells
