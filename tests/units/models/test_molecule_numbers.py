import numpy as np

from equistein.models._figures import molecule_pictures
from equistein.models._molecules import known_graphs, molecule_numbers


def test_numbers_and_pictures_without_a_table_of_bonds(chem):
    sulphide = np.array([[0.0, 0.0, 0.0], [0.97, 0.93, 0.0], [-0.97, 0.93, 0.0]])
    known = known_graphs("SHH", sulphide[None])
    numbers = molecule_numbers("SHH", sulphide[None], known)
    assert numbers["coverage"] == len(known) == 1
    assert numbers["validity"] == 1
    assert "atom_stability" not in numbers
    assert set(molecule_pictures("SHH", sulphide[None])) == {"molecules", "turned"}
