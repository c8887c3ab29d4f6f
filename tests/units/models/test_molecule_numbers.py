import numpy as np

from embedded import embed
from equistein.metrics import compare_molecules
from equistein.models._figures import molecule_pictures
from equistein.plotting import side_by_side


def test_pictures_without_a_table_of_bonds(chem):
    sulphide = np.array([[0.0, 0.0, 0.0], [0.97, 0.93, 0.0], [-0.97, 0.93, 0.0]])
    assert set(molecule_pictures("SHH", sulphide[None])) == {"molecules", "viewer"}


def test_bonds_and_angles_of_new_molecules_stand_beside_the_data(chem):
    symbols = "CCO" + 6 * "H"
    data = embed("CCO", symbols)[None]
    found, floor, panels = compare_molecules(
        symbols, data, 1.02 * np.repeat(data, 3, axis=0)
    )
    assert found["coverage"] == found["validity"] == 1
    assert set(floor) < set(found)
    assert np.isclose(found["bond_CC"], 1.02 * floor["bond_CC"])
    assert np.isclose(found["angle_CCO"], floor["angle_CCO"])
    assert "bond C–O / Å" in panels
    assert len(side_by_side(panels).axes) >= len(panels)
