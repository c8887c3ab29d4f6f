"""Text of .xyz files, plain and extended, in and out."""

import dataclasses
import gzip
import os
import pathlib
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from equistein._check_arguments import check_arguments
from equistein._limits import check_read_size
from equistein.molecules._elements import atomic_numbers_of, is_unit
from equistein.molecules._frames import (
    CutError,
    Frame,
    LARGEST,
    LIKELY,
    number,
    XYZError,
)

FIXED = (
    "an atom is fixed, but all move in samples: fit frames in which all are free, with "
    "the forces on all of them, or the free part alone."
)

_LINE = 128  # bytes of memory
_FRAME = 512
_CHECKED = 1_000  # frames
_REMEDY = "give fewer molecules"
_ENTRY = re.compile(
    r"""(?<!\S) ([A-Za-z][\w.-]*) (?: [\[(] ([\w/]+) [\])] )? \s*=\s*
    ("[^"]*" | '[^']*' | \{[^}]*\} | \[[^\]]*\] | \S+)
    (?: \s+ ([^\s=]+) (?=\s|$) (?!\s*=) )?
    """,
    re.VERBOSE,
)
_TRUE = {"t", "true", "1"}
_FALSE = {"f", "false", "no", "none"}
_SEPARATORS = ("", ">")  # between frames; ORCA writes the second


@dataclasses.dataclass(frozen=True)
class _Columns:
    """Where a line has the element, x, whether the atom moves, and x of vectors."""

    symbol: int = 0
    position: int = 1
    mask: slice | None = None
    vectors: Mapping[str, int] | None = None  # None if there are no names


def text_lines(path: pathlib.Path) -> tuple[list[str], bool]:
    """Return the lines of a file, and whether the last one is ended."""
    check_read_size(str(path), 2 * path.stat().st_size, _REMEDY)
    content = bytearray()
    try:
        with (gzip.open if path.suffix.lower() == ".gz" else open)(path, "rb") as file:
            while block := file.read(2**20):
                content += block
                check_read_size(str(path), 2 * len(content), _REMEDY)
    except (OSError, EOFError, zlib.error) as error:
        raise XYZError(f"{path} cannot be read: {error}.") from None
    if b"\0" in content:
        raise XYZError(f"{path} is not a text file, as an .xyz or .pdb file is.")
    check_read_size(str(path), _LINE * content.count(b"\n"), _REMEDY)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:  # only comments can hold other letters than ASCII
        text = content.decode("latin-1")
    return text.rstrip().split("\n"), text.endswith("\n")


def xyz_frames(path: pathlib.Path, key: str | None) -> Iterator[Frame | CutError]:
    """Yield the frames of a file, or an error where one is cut."""
    lines, is_ended = text_lines(path)
    at = num = 0
    while at < len(lines):
        if lines[at].strip() in _SEPARATORS:
            at += 1
            continue
        try:
            frame, at = _read_frame(path, lines, at, key, is_ended)
            yield frame
        except CutError as error:
            yield CutError(f"{path}, line {at + 1}: frame {num} is cut: {error}")
            counts = (
                i for i in range(at + 2, len(lines)) if _is_count(lines[i].split())
            )
            at = next(counts, len(lines))
        num += 1
        if num % _CHECKED == 0:
            check_read_size(str(path), _FRAME * num, _REMEDY)


def _read_frame(
    path: pathlib.Path, lines: list[str], at: int, key: str | None, is_ended: bool
) -> tuple[Frame, int]:
    """Return the frame that begins at a line, and the line after it."""

    def place(atom: int) -> str:
        return f"{path}, line {at + 3 + atom}"

    count = lines[at].strip()
    if not re.fullmatch(r"[0-9]{1,7}", count) or int(count) < 1:
        raise XYZError(
            f"{place(-2)}: expected the number of atoms of a molecule, at least 1, but "
            f"got {count[:40]!r}."
        )
    end = at + 2 + int(count)
    rows = [line.split() for line in lines[at + 2 : end]]
    whole = next((i for i, row in enumerate(rows) if _is_count(row)), len(rows))
    if whole < int(count):
        raise CutError(f"it has {count} atoms, but ends after {whole} of them.")
    try:
        entries = _entries(lines[at + 1])
        columns = _columns(entries, key)
    except ValueError as error:
        raise XYZError(f"{place(-1)}: {error}") from None
    vectors = columns.vectors or {}
    numbers = np.empty((1 + len(vectors), len(rows), 3))
    for atom, row in enumerate(rows):
        try:
            numbers[:, atom] = _numbers(row, columns)
        except ValueError as error:
            if at + 3 + atom == len(lines) and not is_ended:
                raise CutError(
                    f"its last line is {lines[-1].strip()[:60]!r}."
                ) from None
            raise XYZError(f"{place(atom)}: {error}") from None
    names = [row[columns.symbol] for row in rows]
    if columns.vectors is None and len(rows[0]) >= 7:
        entries["unnamed columns, perhaps of forces"] = ""
    by_name = dict(zip(vectors, numbers[1:], strict=True))
    return Frame(place, names, numbers[0], entries, by_name), end


def _is_count(row: list[str]) -> bool:
    """Return whether words are the first line of a frame."""
    return len(row) == 1 and row[0].isdecimal()


def _numbers(row: list[str], columns: _Columns) -> list[list[float]]:
    """Return the position of an atom and its vectors."""
    firsts = [columns.position, *(columns.vectors or {}).values()]
    least = max(columns.symbol + 1, *(first + 3 for first in firsts))
    if len(row) < least:
        raise ValueError(
            f"expected an element and three coordinates, {least} columns, but got "
            f"{' '.join(row)[:60]!r}."
        )
    if columns.vectors is None and row[0].isdecimal() and len(row) > 4:
        raise ValueError(
            f"{row[0][:20]!r} may be an atomic number or the number of a row: leave "
            "out the columns behind the coordinates, or name all columns in the second "
            "line, as Properties=species:S:1:pos:R:3."
        )
    if columns.mask and not {word.lower() for word in row[columns.mask]} <= _TRUE:
        raise ValueError(FIXED)
    vectors = [list(map(number, row[first : first + 3])) for first in firsts]
    for first, vector in zip(firsts, vectors, strict=True):
        for word, value in zip(row[first:], vector, strict=False):
            if not abs(value) <= LARGEST:
                kind = "coordinate" if first == columns.position else "force"
                raise ValueError(
                    f"expected a finite {kind} of at most {LARGEST:g}, but got "
                    f"{word[:40]!r}."
                )
    return vectors


def _columns(entries: Mapping[str, Any], key: str | None) -> _Columns:
    """Return the columns that `Properties` names, or those of a plain file."""
    value = next((v for k, v in entries.items() if k.lower() == "properties"), "")
    if ":" not in value:  # such as Properties=none
        return _Columns()
    fields = value.split(":")
    good = len(set(fields[::3])) == len(fields[2::3])  # no name is there twice
    if not good or not all(re.fullmatch("[0-9]{1,3}", f) for f in fields[2::3]):
        raise ValueError(f"cannot read the columns {value[:60]!r}.")
    widths = list(map(int, fields[2::3]))
    first = dict(zip(fields[::3], np.cumsum([0, *widths]).tolist(), strict=False))
    three = {
        name for name, width in zip(fields[::3], widths, strict=True) if width == 3
    }
    symbol = next((n for n in ("species", "Z", "numbers", "element") if n in first), "")
    if not symbol or symbol in three or "pos" not in three:
        raise ValueError(
            "the properties need `species` of one column and `pos` of three, but are "
            f"{value[:60]!r}."
        )
    vectors = {
        name: column for name, column in first.items()
        if name in three and (name == key or LIKELY.search(name.lower()))
    }  # fmt: skip
    mask = first.get("move_mask")
    moves = mask and slice(mask, mask + (3 if "move_mask" in three else 1))
    return _Columns(first[symbol], first["pos"], moves, vectors)


def _entries(comment: str) -> dict[str, Any]:
    """Return what the second line of a frame holds by keys.

    Raises:
        ValueError: If the frame is periodic, or has two energies by one name.
    """
    entries: dict[str, Any] = {}
    small: dict[str, str] = {}
    for key, within, word, after in _ENTRY.findall(comment):
        value = word.strip("\"'{}[]")
        before = small.setdefault(key.lower(), value)
        if before is value:
            entries[key] = value
        elif LIKELY.search(key.lower()) and before != value:
            raise ValueError(f"{key} is there twice, {before} and {value}: keep one.")
        for unit in (within, after) if "energy" in key.lower() else ():
            if is_unit(unit, "energy"):  # as in energy[Ha]=-76 or energy = -76 Ha
                entries["energy_unit"] = unit
    cell = small.get("pbc", small.get("lattice", "none")).replace(",", " ")
    words = cell.lower().split()
    if any(word not in _FALSE and word.strip("+-0.") for word in words):
        raise ValueError(
            "the molecule is in a periodic cell, which is not supported; if it is "
            'isolated, write pbc="F F F" there, or leave the `Lattice` out.'
        )
    if "properties" not in small:  # a comment in words
        if re.search(r"(?i)(?<![/\w])bohr\b", comment):
            entries["length_unit"] = "Bohr"
        if "energy" not in small and re.search(
            r"(?i)energ|\be\b|^\s*-?\d+\.\d", comment
        ):
            entries["comment with an energy"] = comment
        if not np.isfinite(number(small.get("energy", "0"))):
            entries = {k: v for k, v in entries.items() if k.lower() != "energy"}
    return entries


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
    bad = ~np.all(np.abs(positions) <= LARGEST, axis=(1, 2))
    if bad.any():
        raise ValueError(
            f"`positions` must be finite and at most {LARGEST:g}, but {bad.sum()} of "
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
