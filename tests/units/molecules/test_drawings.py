import numpy as np
import pytest

from equistein.molecules import drawings, perceive

ETHENE = np.array(
    [[0, 0, 0.66], [0, 0, -0.66]]
    + [[0, side * 0.92, end * 1.23] for end in (1, -1) for side in (1, -1)]
)


def test_a_drawing_has_a_place_for_each_molecule(chem):
    mol = perceive("CCHHHH", ETHENE).mol
    picture = drawings([mol, None, mol], ["one", "", "three"], columns=2)
    assert picture.shape == (2 * 140, 2 * 170, 3)
    assert picture.dtype == np.uint8
    upper, lower = picture[:140], picture[140:]
    assert upper[:, :170].min() < 128
    assert (upper[:, 170:] == 255).all()  # none
    assert lower[:, :170].min() < 128
    assert (lower[:, 170:] == 255).all()
    assert mol.GetNumAtoms() == 6  # hydrogens and positions are kept
    assert mol.GetNumConformers() == 1


def test_no_drawings_are_refused(chem):
    with pytest.raises(ValueError, match="at least one"):
        drawings([], [])
