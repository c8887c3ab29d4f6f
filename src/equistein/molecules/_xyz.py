"""Molecules in .xyz files: in and out."""

import dataclasses
import os
import pathlib
import re
from collections.abc import Sequence

import numpy as np

from equistein.molecules._elements import atomic_numbers_of, SYMBOLS
from equistein.molecules._extended_comment import columns_of, is_periodic

MAX_BYTES = 2**29
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
    """

    symbols: tuple[str, ...]
    positions: np.ndarray


def read_xyz(path: str | os.PathLike[str]) -> list[Molecule]:
    """Return the frames of a plain or extended .xyz file.

    Of an extended file the columns `species` and `pos` are read. An element may be a
    symbol, one with a label such as C1, or an atomic number; isotopes are not told
    apart, so D and T are H. Windows line ends and blank lines between frames do no
    harm.

    Args:
        path: The file.

    Raises:
        XYZError: With file and line, if it is not what it should be, or is periodic:
            cells are not supported, and a crystal is no isolated molecule.
    """
    path = pathlib.Path(path)
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise XYZError(f"{path} has {size} bytes; at most {MAX_BYTES} are read.")
    content = path.read_bytes()
    if b"\0" in content:
        raise XYZError(f"{path} is not a text file, as an .xyz file is.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:  # only comments can hold other letters than ASCII
        text = content.decode("latin-1")
    lines = text.removesuffix("\n").split("\n")
    frames, at = [], 0
    while at < len(lines):
        if lines[at].strip():
            frame, at = _read_frame(path, lines, at)
            frames.append(frame)
        else:
            at += 1
    if not frames:
        raise XYZError(f"{path} holds no molecules.")
    return frames


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
    except ValueError as error:
        raise XYZError(f"{comment}: {error}") from None
    atoms = [
        _read_atom(f"{path}, line {number + 1}", lines[number], columns)
        for number in range(at + 2, end)
    ]
    symbols, positions = zip(*atoms, strict=True)
    return Molecule(tuple(symbols), np.array(positions, np.float64)), end


def _read_atom(
    where: str, line: str, columns: tuple[int, int] | None
) -> tuple[str, list[float]]:
    words = line.split()
    symbol_at, position_at = columns or (0, 1)
    if len(words) < max(symbol_at + 1, position_at + 3):
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
    position = []
    for word in words[position_at : position_at + 3]:
        number = word.replace("*^", "e")  # QM9 writes 1.5*^-6
        if not _NUMBER.fullmatch(number) or abs(float(number)) > _LARGEST:
            raise XYZError(
                f"{where}: expected a finite coordinate of at most {_LARGEST:g}, but "
                f"got {word[:40]!r}."
            )
        position.append(float(number))
    return symbol, position


def _element(word: str) -> str | None:
    """Return the symbol that a word such as C, c, C1, or 6 means; None if none."""
    if re.fullmatch("[0-9]{1,3}", word):
        return SYMBOLS[int(word) - 1] if 1 <= int(word) <= len(SYMBOLS) else None
    found = re.fullmatch(r"([A-Za-z]{1,2})(?:[0-9_].*)?", word)
    symbol = found.group(1).capitalize() if found else ""
    symbol = _ISOTOPES.get(symbol, symbol)
    return symbol if symbol in SYMBOLS else None
