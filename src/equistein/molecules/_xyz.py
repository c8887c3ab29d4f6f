"""Molecules in .xyz files: in and out."""

import dataclasses
import math
import os
import pathlib
import re
from collections.abc import Sequence

import numpy as np

from equistein.molecules._elements import SYMBOLS

MAX_BYTES = 2**29
_LARGEST = 1e6  # Angstrom


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

    Of an extended file the columns `species` and `pos` are read. Windows line ends and
    blank lines between frames do no harm.

    Args:
        path: The file.

    Raises:
        XYZError: With file and line, if it is not what it should be.
    """
    path = pathlib.Path(path)
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise XYZError(f"{path} has {size} bytes; at most {MAX_BYTES} are read.")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise XYZError(f"{path} is not a text file, as an .xyz file is.") from None
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
    """
    lines = []
    for frame in np.asarray(positions, np.float64):
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
    where = _columns(f"{path}, line {at + 2}", lines[at + 1])
    atoms = [
        _read_atom(f"{path}, line {number + 1}", lines[number], *where)
        for number in range(at + 2, end)
    ]
    symbols, positions = zip(*atoms, strict=True)
    return Molecule(tuple(symbols), np.array(positions, np.float64)), end


def _columns(where: str, comment: str) -> tuple[int, int]:
    """Return the columns of the element and of x, from an extended comment line."""
    found = re.search(r'Properties="?([^\s"]+)', comment)
    if found is None:
        return 0, 1
    fields, column, places = found.group(1).split(":"), 0, {}
    if len(fields) % 3 or not all(re.fullmatch("[0-9]{1,3}", f) for f in fields[2::3]):
        raise XYZError(f"{where}: cannot read {found.group(0)[:60]!r}.")
    for name, width in zip(fields[::3], fields[2::3], strict=True):
        places[name] = column
        column += int(width)
    if "species" not in places or "pos" not in places:
        raise XYZError(f"{where}: the properties need `species` and `pos`.")
    return places["species"], places["pos"]


def _read_atom(
    where: str, line: str, symbol_at: int, position_at: int
) -> tuple[str, list[float]]:
    words = line.split()
    if len(words) < max(symbol_at + 1, position_at + 3):
        raise XYZError(
            f"{where}: expected an element and three coordinates, but got "
            f"{line.strip()[:60]!r}."
        )
    symbol = words[symbol_at].capitalize()
    if symbol not in SYMBOLS:
        raise XYZError(f"{where}: there is no element {words[symbol_at][:20]!r}.")
    position = []
    for word in words[position_at : position_at + 3]:
        try:  # QM9 writes 1.5*^-6
            value = float(word.replace("*^", "e"))
        except ValueError:
            value = math.nan
        if not abs(value) <= _LARGEST:
            raise XYZError(
                f"{where}: expected a finite coordinate of at most {_LARGEST:g}, but "
                f"got {word[:40]!r}."
            )
        position.append(value)
    return symbol, position
