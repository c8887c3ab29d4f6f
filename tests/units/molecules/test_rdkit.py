import sys

import numpy as np
import pytest

from equistein.molecules import (
    drawings,
    embed,
    from_bonds,
    has_rdkit,
    isomers,
    MissingRDKit,
    perceive,
    relax,
    score_molecules,
)

WATER = np.array([[0, 0, 0.117], [0, 0.757, -0.469], [0, -0.757, -0.469]])


@pytest.mark.parametrize(
    "call",
    [
        lambda: perceive("OHH", WATER),
        lambda: from_bonds("OH", np.array([[0, 1], [1, 0]])),
        lambda: isomers("CHHHH"),
        lambda: embed("C", "CHHHH"),
        lambda: relax(None),
        lambda: drawings([None], [""]),
        lambda: score_molecules("OHH", WATER[None], ["O"]),
    ],
    ids=["perceive", "bonds", "isomers", "embed", "relax", "drawings", "scores"],
)
def test_without_rdkit_one_is_told_how_to_install_it(call, monkeypatch):
    monkeypatch.setitem(sys.modules, "rdkit", None)
    assert not has_rdkit()
    with pytest.raises(MissingRDKit, match=r"pip install 'equistein\[molecules\]'"):
        call()


def test_with_rdkit_it_is_found(chem):
    assert has_rdkit()
