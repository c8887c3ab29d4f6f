import os
import pathlib

import jax
import numpy as np
import pytest

from equistein.molecules import symbols_of


@pytest.fixture
def qm9_folder():
    """The folder of QM9's molecules and the authors' samples, where it is at hand."""
    folder = pathlib.Path(os.environ.get("EQUISTEIN_DATA", "")).expanduser() / "qm9"
    if not (folder / "authors_sampled_molecules.npy").is_file():
        pytest.skip("$EQUISTEIN_DATA names no folder with QM9 and the authors' samples")
    return folder


@pytest.fixture
def qm9(qm9_folder):
    """Elements, positions and SMILES of QM9's isomers of C5H8O."""
    with np.load(qm9_folder / "qm9_C5H8O.npz", allow_pickle=False) as file:
        symbols = symbols_of(file["charges"][0])
        return symbols, file["positions"], file["smiles"].tolist()


@pytest.fixture
def authors(qm9_folder):
    """Elements and positions of the 64 molecules that the authors published."""
    clouds = np.load(qm9_folder / "authors_sampled_molecules.npy", allow_pickle=False)
    return tuple("CCCOCC" + 8 * "H"), clouds.reshape(64, 14, 3)


@pytest.fixture
def chem():
    pytest.importorskip("rdkit")
    from rdkit import Chem

    return Chem


@pytest.fixture
def fresh_code():
    """Compile all anew in a test that replaces a function, and again after it."""
    jax.clear_caches()
    yield
    jax.clear_caches()
