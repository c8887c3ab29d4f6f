"""Molecules: files in and out, bonds, and how good they are."""

from equistein.molecules._ase import (
    ase as ase,
    from_atoms as from_atoms,
    is_molecules as is_molecules,
    MissingASE as MissingASE,
    READ_BY_ASE as READ_BY_ASE,
    read_molecules as read_molecules,
)
from equistein.molecules._bonds import infer_bonds as infer_bonds
from equistein.molecules._distances_and_angles import (
    angles as angles,
    distances as distances,
)
from equistein.molecules._drawings import drawings as drawings
from equistein.molecules._elements import (
    atomic_numbers_of as atomic_numbers_of,
    atoms_of as atoms_of,
    formula as formula,
    symbols_of as symbols_of,
    VALENCES as VALENCES,
)
from equistein.molecules._geometry import Geometry as Geometry, geometry as geometry
from equistein.molecules._isomers import embed as embed, isomers as isomers
from equistein.molecules._perception import (
    bonds_of as bonds_of,
    from_bonds as from_bonds,
    graph_smiles as graph_smiles,
    perceive as perceive,
    Perceived as Perceived,
)
from equistein.molecules._rdkit import (
    has_rdkit as has_rdkit,
    MissingRDKit as MissingRDKit,
)
from equistein.molecules._relaxation import relax as relax, Relaxed as Relaxed
from equistein.molecules._scores import (
    score_molecules as score_molecules,
    Scores as Scores,
)
from equistein.molecules._stability import (
    bond_orders as bond_orders,
    stable_atoms as stable_atoms,
)
from equistein.molecules._strain import Strain as Strain, strain as strain
from equistein.molecules._units import BOLTZMANN as BOLTZMANN
from equistein.molecules._xyz import (
    Molecule as Molecule,
    read_xyz as read_xyz,
    write_xyz as write_xyz,
    XYZError as XYZError,
)
