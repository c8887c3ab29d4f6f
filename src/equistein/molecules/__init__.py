"""Molecules: files in and out, bonds, geometry, and thermal frames."""

from equistein.molecules._bonds import infer_bonds as infer_bonds
from equistein.molecules._elements import (
    atomic_numbers_of as atomic_numbers_of,
    atoms_of as atoms_of,
    BOLTZMANN as BOLTZMANN,
    formula as formula,
    symbols_of as symbols_of,
    unit_value as unit_value,
    VALENCES as VALENCES,
    valences_of as valences_of,
)
from equistein.molecules._files import (
    from_atoms as from_atoms,
    is_molecules as is_molecules,
    read_molecules as read_molecules,
    TRAJECTORIES as TRAJECTORIES,
    write_xyz as write_xyz,
)
from equistein.molecules._frames import (
    Frame as Frame,
    interpret as interpret,
    Molecule as Molecule,
    Molecules as Molecules,
    READ_OPTIONS as READ_OPTIONS,
    XYZError as XYZError,
)
from equistein.molecules._handedness import (
    hands as hands,
    main_hand as main_hand,
    stereo_smiles as stereo_smiles,
)
from equistein.molecules._rdkit import (
    bonds_of as bonds_of,
    Geometry as Geometry,
    geometry as geometry,
    graph_smiles as graph_smiles,
    has_rdkit as has_rdkit,
    order_by_bonds as order_by_bonds,
    perceive as perceive,
    Perceived as Perceived,
)
from equistein.molecules._thermal import (
    check_thermal as check_thermal,
    Estimate as Estimate,
    ThermalCheck as ThermalCheck,
)
