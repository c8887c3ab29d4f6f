import numpy as np
import pytest

from equistein.molecules import embed, geometry, perceive, strain

PROPANE = "CCC" + 8 * "H"


@pytest.fixture
def propane(chem):
    positions = embed("CCC", PROPANE)
    return [perceive(PROPANE, factor * positions).mol for factor in (1.0, 1.03)]


def test_only_a_stretched_molecule_is_strained(propane):
    energies, displacements = strain(propane)
    assert abs(energies[0]) < 1e-3
    assert displacements[0] < 1e-2
    # Ten bonds of some 5 mdyn / Angstrom, 72 kcal/mol per half square Angstrom each.
    assert 1 < energies[1] < 20
    assert displacements[1] > 0.02
    assert len(strain(propane, max_num=1).energies) == 1


def test_bonds_angles_and_rings_by_hand(propane, chem):
    found = geometry(propane[:1])
    assert list(found.bonds) == ["CH", "CC"]
    assert [len(lengths) for lengths in found.bonds.values()] == [8, 2]
    assert np.allclose(found.bonds["CC"], 1.52, atol=0.02)
    assert list(found.angles) == ["CCC"]
    assert np.allclose(found.angles["CCC"], 112, atol=2)
    assert len(found.rings) == 0
    oxirane = "CCO" + 4 * "H"
    ring = geometry([perceive(oxirane, embed("C1CO1", oxirane)).mol] * 2)
    assert ring.rings.tolist() == [3, 3]
    assert ring.num_molecules == 2
    assert list(ring.angles) == ["CCO", "COC"]
    assert np.allclose(ring.angles["CCO"], 59.5, atol=1.5)
