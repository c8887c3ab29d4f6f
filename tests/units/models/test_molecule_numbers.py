import numpy as np

from equistein.models._figures import molecule_pictures
from equistein.models._molecules import molecule_numbers


def test_numbers_and_pictures_without_a_table_of_bonds(chem):
    sulphide = np.array([[0.0, 0.0, 0.0], [0.97, 0.93, 0.0], [-0.97, 0.93, 0.0]])
    numbers = molecule_numbers("SHH", sulphide[None], sulphide[None])
    assert numbers["validity"] == 1
    assert "atom_stability" not in numbers
    assert set(molecule_pictures("SHH", sulphide[None])) == {"molecules", "turned"}
