"""Atoms that new molecules are to have, from a file."""

import collections
import pathlib
from collections.abc import Sequence

import numpy as np

from equistein.molecules import formula, MissingASE, read_molecules
from equistein.runs import UserError
from equistein.training import Clamp


def held_atoms(
    path: pathlib.Path, atoms: str | None, species: Sequence[str] | None
) -> Clamp:
    """Return what holds atoms of a molecule in a file.

    Each is the first atom of its element in new molecules that none before it is.

    Args:
        path: An .xyz file, or one that ASE reads, of one molecule or a part of one.
        atoms: The numbers of the atoms to hold, from 0 on, such as 0,1,2; None is all.
        species: The element of each atom of new molecules.

    Raises:
        UserError: If there is no such atom, or no place for one.
    """
    if species is None:
        raise UserError("--hold is for molecules, which this run has not learned.")
    if not path.is_file():
        raise UserError(f"There is no file {path}.")
    try:
        frames = read_molecules(path)
    except (MissingASE, ValueError) as error:
        raise UserError(str(error)) from None
    if len(frames) != 1:
        raise UserError(f"{path} must hold one molecule, but holds {len(frames)}.")
    frame = frames[0]
    chosen = _numbers(atoms, len(frame.symbols))
    symbols = [frame.symbols[index] for index in chosen]
    excess = collections.Counter(symbols) - collections.Counter(species)
    if excess:
        raise UserError(
            f"--hold has {formula(symbols)}, of which {formula(species)} has no place "
            f"for {formula(list(excess.elements()))}."
        )
    values, mask = np.zeros((len(species), 3)), np.zeros(len(species), bool)
    for index, symbol in zip(chosen, symbols, strict=True):
        row = next(i for i, s in enumerate(species) if s == symbol and not mask[i])
        values[row], mask[row] = frame.positions[index], True
    if mask.all():
        raise UserError(
            f"--hold has all {len(species)} atoms: name those to hold by --hold-atoms."
        )
    return Clamp(values, mask)


def _numbers(atoms: str | None, num: int) -> list[int]:
    """Return the numbers in a list such as 0,1,2."""
    if atoms is None:
        return list(range(num))
    words = [word.strip() for word in atoms.split(",")]
    right = all(word.isdecimal() and int(word) < num for word in words)
    if not right or len(set(map(int, words))) < len(words):
        raise UserError(
            f"--hold-atoms needs different numbers from 0 to {num - 1}, such as 0,1,2, "
            f"but got {atoms!r}."
        )
    return [int(word) for word in words]
