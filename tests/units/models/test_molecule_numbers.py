import numpy as np

from equistein.models import molecule_numbers
from equistein.models._figures import molecule_pictures
from equistein.models._molecules import report_molecules
from equistein.molecules import embed, perceive
from equistein.plotting import side_by_side


def test_numbers_and_pictures_without_a_table_of_bonds(chem):
    sulphide = np.array([[0.0, 0.0, 0.0], [0.97, 0.93, 0.0], [-0.97, 0.93, 0.0]])
    known = {perceive("SHH", sulphide).smiles}
    numbers = molecule_numbers("SHH", sulphide[None], known)
    assert numbers["coverage"] == len(known) == 1
    assert numbers["validity"] == 1
    assert "atom_stability" not in numbers
    assert set(molecule_pictures("SHH", sulphide[None])) == {"molecules", "turned"}


def test_the_shapes_of_new_molecules_stand_beside_the_data(chem):
    symbols = "CCO" + 6 * "H"
    data = embed("CCO", symbols)[None]
    found, floor, panels = report_molecules(
        symbols, data, 1.02 * np.repeat(data, 3, axis=0)
    )
    assert found["coverage"] == found["validity"] == 1
    assert set(floor) < set(found)
    assert found["strain"] > 0.5 > floor["strain"]
    assert np.isclose(found["bond_CC"], 1.02 * floor["bond_CC"])
    assert np.isclose(found["angle_CCO"], floor["angle_CCO"])
    assert found["rings_3"] == floor["rings_3"] == 0
    assert "bond C–O / Å" in panels
    assert len(side_by_side(panels).axes) >= len(panels)
