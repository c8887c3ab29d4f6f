"""Files of molecules: .xyz in and out, and what ASE reads."""

import dataclasses
import gzip
import math
import os
import pathlib
import re
import types
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from equistein._check_arguments import check_arguments
from equistein._limits import check_read_size, LimitError
from equistein.molecules._elements import atomic_numbers_of, SYMBOLS

READ_BY_ASE = (".traj", ".db", ".pdb", ".gz")

_LINE = 128  # bytes of memory
_FRAME = 512
_CHECKED = 1_000  # frames
_LARGEST = 1e6  # Angstrom
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_ISOTOPES = {"D": "H", "T": "H"}
_ENTRY = re.compile(
    r"""(?<!\S) ([A-Za-z]\w*) \s*=\s* ("[^"]*" | '[^']*' | \{[^}]*\} | \[[^\]]*\] | \S+)
    """,
    re.VERBOSE,
)
_FORCES = ("forces", "force")
_FALSE = {"f", "false", "no", "none"}


class XYZError(ValueError):
    """A file of molecules is damaged, or is none."""


@dataclasses.dataclass(frozen=True)
class Molecule:
    """One frame of an .xyz file.

    Attributes:
        symbols: The element of each atom.
        positions: Its position, `(atom, 3)`, in the file's unit, usually Angstrom.
        energy: The energy in an extended file, in its unit, usually eV, or None.
        forces: The forces on its atoms, `(atom, 3)`, or None.
    """

    symbols: tuple[str, ...]
    positions: np.ndarray
    energy: float | None = None
    forces: np.ndarray | None = None


@check_arguments
def read_xyz(path: str | os.PathLike[str]) -> list[Molecule]:
    """Return the frames of a plain or extended .xyz file.

    Of an extended file the columns `species`, `pos` and `forces` are read, and the
    `energy` of its second line. An element may be a symbol, one with a label such as
    C1, or an atomic number; D and T are read as H.

    Raises:
        XYZError: With file and line, if it is damaged or periodic.
    """
    path = pathlib.Path(path)
    lines = _lines(path)
    frames, at = [], 0
    while at < len(lines):
        if lines[at].strip():
            frame, at = _read_frame(path, lines, at)
            frames.append(frame)
            if len(frames) % _CHECKED == 0:
                _check_size(path, _FRAME * len(frames))
        else:
            at += 1
    if not frames:
        raise XYZError(f"{path} holds no molecules.")
    return frames


def _check_size(path: pathlib.Path, needed: int) -> None:
    try:
        check_read_size(str(path), needed, "give fewer molecules")
    except LimitError as error:
        raise XYZError(str(error)) from None


def _lines(path: pathlib.Path) -> list[str]:
    _check_size(path, 2 * path.stat().st_size)
    content = path.read_bytes()
    if b"\0" in content:
        raise XYZError(f"{path} is not a text file, as an .xyz file is.")
    _check_size(path, _LINE * content.count(b"\n"))
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:  # only comments can hold other letters than ASCII
        text = content.decode("latin-1")
    return text.removesuffix("\n").split("\n")


@check_arguments
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
        comment: The second line of each frame.

    Raises:
        ValueError: If there is no molecule, no such element, or a position is not
            finite.
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
    """Return the frame that begins at a line, and the line after it."""
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
    entries = {  # the first of several entries with one key counts
        entry.group(1).lower(): entry.group(2).strip("\"'{}[]")
        for entry in reversed(list(_ENTRY.finditer(lines[at + 1])))
    }
    if _is_periodic(entries):
        raise XYZError(
            f"{comment}: the molecule is in a periodic cell, which is not supported; "
            'if it is isolated, write pbc="F F F" there, or leave the `Lattice` out.'
        )
    try:
        columns, energy = _columns(entries), _energy(entries)
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
    least = max(symbol_at + 1, position_at + 3, (force_at or 0) + 3)
    if len(words) < least:
        raise XYZError(
            f"{where}: expected an element and three coordinates, {least} columns, "
            f"but got {line.strip()[:60]!r}."
        )
    if columns is None and words[0].isdecimal() and len(words) > 4:
        raise XYZError(
            f"{where}: {words[0][:20]!r} may be an atomic number or the number of a "
            "row: leave out the columns behind the coordinates, or name all columns "
            "in the second line, as Properties=species:S:1:pos:R:3."
        )
    symbol = _element(where, words[symbol_at])
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


def _element(where: str, word: str) -> str:
    """Return the symbol that a word such as C, c, C1, or 6 means."""
    if re.fullmatch("[0-9]{1,3}", word) and 1 <= int(word) <= len(SYMBOLS):
        return SYMBOLS[int(word) - 1]
    match = re.fullmatch(r"([A-Za-z]{1,2})(?:[0-9_].*)?", word)
    symbol = match.group(1).capitalize() if match else ""
    symbol = _ISOTOPES.get(symbol, symbol)
    if symbol not in SYMBOLS:
        raise XYZError(f"{where}: there is no element {word[:20]!r}.")
    return symbol


def _columns(entries: dict[str, str]) -> tuple[int, int, int | None] | None:
    """Return the columns of the element, of x and of the force along x, if named."""
    value = entries.get("properties", "")
    if ":" not in value:  # such as Properties=none
        return None
    fields = value.split(":")
    if len(fields) % 3 or not all(re.fullmatch("[0-9]{1,3}", f) for f in fields[2::3]):
        raise ValueError(f"cannot read the columns {value[:60]!r}.")
    first, widths, column = {}, {}, 0
    for name, width in zip(fields[::3], map(int, fields[2::3]), strict=True):
        first[name], widths[name] = column, width
        column += width
    if widths.get("species") != 1 or widths.get("pos") != 3:
        raise ValueError(
            "the properties need `species` of one column and `pos` of three, but are "
            f"{value[:60]!r}."
        )
    force = next((first[n] for n in _FORCES if widths.get(n) == 3), None)
    return first["species"], first["pos"], force


def _energy(entries: dict[str, str]) -> float | None:
    word = entries.get("energy")
    if word is None:
        return None
    try:
        energy = float(word)
    except ValueError:
        energy = math.nan
    if not math.isfinite(energy):
        if "properties" not in entries:  # a comment in words
            return None
        raise ValueError(f"the energy {word[:40]!r} is no finite number.")
    return energy


def _is_periodic(entries: dict[str, str]) -> bool:
    """Return whether `pbc` has a true entry, or is missing while `Lattice` is there."""
    value = entries.get("pbc", entries.get("lattice", "none"))
    words = value.replace(",", " ").lower().split()
    return any(word not in _FALSE and word.strip("+-0.") for word in words)


class MissingASE(ImportError):
    """ASE is not installed."""


@check_arguments
def is_molecules(path: str | os.PathLike[str]) -> bool:
    """Return whether a file holds molecules, by its name."""
    path = pathlib.Path(path)
    last = [suffix.lower() for suffix in path.suffixes[-2:]]
    if last and last[-1] == ".gz":
        return last[0] in (".xyz", ".extxyz")
    return bool(last) and last[-1] in (".xyz", ".extxyz", *READ_BY_ASE)


@check_arguments
def read_molecules(path: str | os.PathLike[str]) -> list[Molecule]:
    """Return the frames of an .xyz file, or of a .traj, .db, .pdb or .xyz.gz by ASE.

    Raises:
        XYZError: If it is damaged or periodic.
        MissingASE: If it is not an .xyz file, and ASE is not installed.
    """
    path = pathlib.Path(path)
    if path.suffix.lower() in (".xyz", ".extxyz"):
        return read_xyz(path)
    ase()
    from ase.io import iread

    _check_size(path, 2 * path.stat().st_size)
    try:
        packed = path.suffix.lower() == ".gz"
        if packed:
            _check_unpacked(path)
        kind = "extxyz" if packed else None
        frames = from_atoms(iread(path, index=":", format=kind))
    except XYZError as error:
        raise XYZError(f"{path}: {error}") from None
    except Exception as error:  # a damaged file can raise anything
        reason = f"{type(error).__name__}: {error}"
        raise XYZError(f"{path} cannot be read by ASE: {reason}") from None
    if not frames:
        raise XYZError(f"{path} holds no molecules.")
    return frames


@check_arguments
def from_atoms(atoms: Iterable[Any]) -> list[Molecule]:
    """Return molecules of `ase.Atoms`, with their energies and forces if known."""
    frames = []
    for index, each in enumerate(atoms):
        if np.any(each.pbc):
            raise XYZError(
                f"frame {index} is periodic, which is not supported; if it is "
                "isolated, set `atoms.pbc = False`."
            )
        positions = np.array(each.positions, np.float64)
        if not np.all(np.abs(positions) <= _LARGEST):
            raise XYZError(f"frame {index} has a position beyond {_LARGEST:g}.")
        results = getattr(each.calc, "results", {})
        energy, forces = results.get("energy"), results.get("forces")
        if forces is not None and np.shape(forces) != positions.shape:
            raise XYZError(
                f"frame {index} needs forces of shape {positions.shape}, but got "
                f"{np.shape(forces)}."
            )
        frames.append(
            Molecule(
                tuple(each.get_chemical_symbols()),
                positions,
                None if energy is None else float(energy),
                None if forces is None else np.array(forces, np.float64),
            )
        )
    return frames


@check_arguments
def ase() -> types.ModuleType:
    """Return the package `ase`, or raise `MissingASE`."""
    try:
        import ase
    except ImportError:
        raise MissingASE(
            "This needs ASE, the Atomic Simulation Environment: "
            "pip install 'equistein[ase]'."
        ) from None
    return ase


def _check_unpacked(path: pathlib.Path) -> None:
    size = 0
    with gzip.open(path) as file:
        while block := file.read(2**20):
            size += len(block)
            _check_size(path, 2 * size)
