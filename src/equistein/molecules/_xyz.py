"""Molecules in .xyz files: in and out."""

import dataclasses
import os
import pathlib
import re
from collections.abc import Sequence

import numpy as np

from equistein._gate import gate
from equistein._limits import check_bytes, LimitError
from equistein.molecules._elements import atomic_numbers_of, SYMBOLS
from equistein.molecules._extended_comment import (
    columns_of,
    energy_of,
    is_periodic,
)

_LINE = 128  # bytes of memory
_FRAME = 512
_CHECKED = 1_000  # frames
_LARGEST = 1e6  # Angstrom
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_ISOTOPES = {"D": "H", "T": "H"}


class XYZError(ValueError):
    """A file is no .xyz file, or a damaged one."""


@dataclasses.dataclass(frozen=True)
class Molecule:
    """One frame of an .xyz file.

    Attributes:
        symbols: The element of each atom.
        positions: Where it is, `(atom, 3)`, in the file's unit, usually Angstrom.
        energy: What an extended file says of it, in its unit, usually eV, or None.
        forces: Those on its atoms, `(atom, 3)`, or None.
    """

    symbols: tuple[str, ...]
    positions: np.ndarray
    energy: float | None = None
    forces: np.ndarray | None = None


@gate
def read_xyz(path: str | os.PathLike[str]) -> list[Molecule]:
    """Return the frames of a plain or extended .xyz file.

    Of an extended file the columns `species`, `pos` and `forces` are read, and the
    `energy` of its second line. An element may be a
    symbol, one with a label such as C1, or an atomic number; isotopes are not known
    apart, so D and T are H. Windows line ends and blank lines between frames do no
    harm.

    Args:
        path: The file.

    Raises:
        XYZError: With file and line, if it is not what it should be, or is periodic:
            cells are not supported, and a crystal is no isolated molecule.
    """
    path = pathlib.Path(path)
    lines = _lines(path)
    frames, at = [], 0
    while at < len(lines):
        if lines[at].strip():
            frame, at = _read_frame(path, lines, at)
            frames.append(frame)
            if len(frames) % _CHECKED == 0:
                check_memory(path, _FRAME * len(frames))
        else:
            at += 1
    if not frames:
        raise XYZError(f"{path} holds no molecules.")
    return frames


def check_memory(path: pathlib.Path, needed: int) -> None:
    """Raise unless the molecules of a file fit into memory.

    Raises:
        XYZError: If they do not.
    """
    try:
        check_bytes(str(path), needed, "give fewer molecules")
    except LimitError as error:
        raise XYZError(str(error)) from None


def _lines(path: pathlib.Path) -> list[str]:
    """Return the lines of a file of text."""
    check_memory(path, 2 * path.stat().st_size)
    content = path.read_bytes()
    if b"\0" in content:
        raise XYZError(f"{path} is not a text file, as an .xyz file is.")
    check_memory(path, _LINE * content.count(b"\n"))
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:  # only comments can hold other letters than ASCII
        text = content.decode("latin-1")
    return text.removesuffix("\n").split("\n")


@gate
def write_xyz(
    path: str | os.PathLike[str],
    symbols: Sequence[str],
    positions: np.ndarray,
    comment: str = "",
) -> None:
    """Write molecules of the same atoms into an .xyz file.

    Args:
        path: The file.
        symbols: The element of each atom.
        positions: Their positions, `(molecule, atom, 3)`.
        comment: What stands in the second line of each frame.

    Raises:
        ValueError: If `read_xyz` would refuse the file: there is no molecule, no such
            element, or a position is not finite.
    """
    atomic_numbers_of(symbols)
    positions = np.asarray(positions, np.float64)
    if positions.shape[1:] != (len(symbols), 3) or positions.size == 0:
        raise ValueError(
            f"`positions` must have shape (molecule, {len(symbols)}, 3), with at least "
            f"one molecule, but got {positions.shape}."
        )
    bad = ~np.all(np.abs(positions) <= _LARGEST, axis=(1, 2))
    if bad.any():
        raise ValueError(
            f"`positions` must be finite and at most {_LARGEST:g}, but {bad.sum()} of "
            f"{len(bad)} molecules are not, the first at index {bad.argmax()}: leave "
            "them out."
        )
    lines = []
    for frame in positions:
        lines += [str(len(symbols)), " ".join(comment.split())]
        lines += [
            f"{symbol:<2} {x:15.8f} {y:15.8f} {z:15.8f}"
            for symbol, (x, y, z) in zip(symbols, frame, strict=True)
        ]
    pathlib.Path(path).write_text("\n".join(lines) + "\n")


def _read_frame(path: pathlib.Path, lines: list[str], at: int) -> tuple[Molecule, int]:
    """Return the frame that begins at a line, and the line behind it."""
    count = lines[at].strip()
    if not re.fullmatch(r"[0-9]{1,7}", count) or int(count) < 1:
        raise XYZError(
            f"{path}, line {at + 1}: expected the number of atoms of a molecule, at "
            f"least 1, but got {count[:40]!r}."
        )
    end = at + 2 + int(count)
    if end > len(lines):
        raise XYZError(
            f"{path}, line {at + 1}: the molecule has {count} atoms, but the file ends "
            f"after {max(0, len(lines) - at - 2)} of them."
        )
    comment = f"{path}, line {at + 2}"
    if is_periodic(lines[at + 1]):
        raise XYZError(
            f"{comment}: the molecule is in a periodic cell, which is not supported; "
            'if it is isolated, write pbc="F F F" there, or leave the `Lattice` out.'
        )
    try:
        columns = columns_of(lines[at + 1])
        energy = energy_of(lines[at + 1])
    except ValueError as error:
        raise XYZError(f"{comment}: {error}") from None
    atoms = [
        _read_atom(f"{path}, line {number + 1}", lines[number], columns)
        for number in range(at + 2, end)
    ]
    symbols, positions, forces = zip(*atoms, strict=True)
    known = None if forces[0] is None else np.array(forces, np.float64)
    read = Molecule(tuple(symbols), np.array(positions, np.float64), energy, known)
    return read, end


def _read_atom(
    where: str, line: str, columns: tuple[int, int, int | None] | None
) -> tuple[str, list[float], list[float] | None]:
    words = line.split()
    symbol_at, position_at, force_at = columns or (0, 1, None)
    if len(words) < max(symbol_at + 1, position_at + 3, (force_at or 0) + 3):
        raise XYZError(
            f"{where}: expected an element and three coordinates, but got "
            f"{line.strip()[:60]!r}."
        )
    if columns is None and words[0].isdecimal() and len(words) > 4:
        raise XYZError(
            f"{where}: {words[0][:20]!r} may be an atomic number or the number of a "
            "row: leave the columns behind the coordinates out, or name all columns "
            "in the line above as Properties=species:S:1:pos:R:3 does."
        )
    symbol = _element(words[symbol_at])
    if symbol is None:
        raise XYZError(f"{where}: there is no element {words[symbol_at][:20]!r}.")
    position = _vector(where, "coordinate", words[position_at : position_at + 3])
    if force_at is None:
        return symbol, position, None
    return symbol, position, _vector(where, "force", words[force_at : force_at + 3])


def _vector(where: str, kind: str, words: list[str]) -> list[float]:
    numbers = []
    for word in words:
        number = word.replace("*^", "e")  # QM9 writes 1.5*^-6
        if not _NUMBER.fullmatch(number) or abs(float(number)) > _LARGEST:
            raise XYZError(
                f"{where}: expected a finite {kind} of at most {_LARGEST:g}, but got "
                f"{word[:40]!r}."
            )
        numbers.append(float(number))
    return numbers


def _element(word: str) -> str | None:
    """Return the symbol that a word such as C, c, C1, or 6 means; None if none."""
    if re.fullmatch("[0-9]{1,3}", word):
        return SYMBOLS[int(word) - 1] if 1 <= int(word) <= len(SYMBOLS) else None
    found = re.fullmatch(r"([A-Za-z]{1,2})(?:[0-9_].*)?", word)
    symbol = found.group(1).capitalize() if found else ""
    symbol = _ISOTOPES.get(symbol, symbol)
    return symbol if symbol in SYMBOLS else None
