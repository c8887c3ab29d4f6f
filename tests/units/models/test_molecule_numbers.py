import numpy as np

from equistein.models._figures import molecule_pictures
from equistein.models._molecules import (
    known_graphs,
    molecule_numbers,
    report_molecules,
)
from equistein.molecules import embed
from equistein.plotting import side_by_side


def test_numbers_and_pictures_without_a_table_of_bonds(chem):
    sulphide = np.array([[0.0, 0.0, 0.0], [0.97, 0.93, 0.0], [-0.97, 0.93, 0.0]])
    known = known_graphs("SHH", sulphide[None])
    numbers = molecule_numbers("SHH", sulphide[None], known)
    assert numbers["coverage"] == len(known) == 1
    assert numbers["validity"] == 1
    assert "atom_stability" not in numbers
    assert set(molecule_pictures("SHH", sulphide[None])) == {"molecules", "turned"}


def test_the_shapes_of_new_molecules_stand_beside_the_data(chem):
    symbols = "CCO" + 6 * "H"
    data = embed("CCO", symbols)[None]
    told = report_molecules(symbols, data, 1.02 * np.repeat(data, 3, axis=0))
    assert told.numbers["coverage"] == told.numbers["validity"] == 1
    assert set(told.floor) < set(told.numbers)
    assert told.numbers["strain"] > 0.5 > told.floor["strain"]
    assert np.isclose(told.numbers["bond_CC"], 1.02 * told.floor["bond_CC"])
    assert np.isclose(told.numbers["angle_CCO"], told.floor["angle_CCO"])
    assert told.numbers["rings_3"] == told.floor["rings_3"] == 0
    assert "bond C–O / Å" in told.panels
    assert len(side_by_side(told.panels).axes) >= len(told.panels)
