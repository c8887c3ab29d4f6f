"""Frames as they are in a file, and the molecules that they stand for."""

import collections
import dataclasses
import functools
import math
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from equistein._limits import check_read_size
from equistein.molecules._elements import (
    atomic_numbers_of,
    atoms_of,
    formula,
    Kind,
    SYMBOLS,
    unit_value,
)

READ_OPTIONS = (
    "energy_key", "forces_key", "energy_unit", "force_unit", "length_unit", "species",
    "charge", "formula", "skip_incomplete", "topology", "stride", "atoms",
)  # fmt: skip
"""What `read_molecules` takes where a file does not say it."""

LARGEST = 1e6  # Angstrom
LIKELY = re.compile(  # what a key of energies or forces may be like, in small letters
    "energ|forc|frc|grad|column|potential|scf|toten"
    "|(^|[^a-z])(total$|(d?[efguv]|pe|e(tot(al)?|pot|dft|scf))([^a-z]|$))"
)

_OTHER = set(  # words in keys of what is no energy or force of the whole molecule
    """free kinetic per atom atoms atomic old std error mae rmse weight formation min
    max mean var binding atomization dispersion zero correction uncertainty bias gap
    interaction repulsion solvation strain homo lumo vibrational thermal""".split()
)
_CHARGE = re.compile("((total|net|formal|mol[a-z]*|system)_)?(charges?|chrg)|q(_?tot)?")
_UNITS: dict[Kind, str] = {"length": "Angstrom", "energy": "eV", "force": "eV/Angstrom"}
_UNIT_OF = {  # in a key and its value
    "length": "leng|dist|pos|coord|^r_|^units? (ang|bohr|nm|pm|å)", "force": "forc|^f_",
    "energy": r"energ|^e_|(^| )units?\b(?! (ang|bohr|nm|pm|å))",
}  # fmt: skip
ENERGY_UNIT = r"(?i:(?<![a-z])(?:m?ev|hartrees?|ha|eh|ry|kcal|kj|a\.u\.)(?![a-z]))"
"""What a unit of energies begins with, behind a number or in a key."""

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?")
_FRAME = 512  # bytes of memory
_ROUNDED = 1e-4  # of the longest edge of a cell
_TOO_CLOSE = 0.5  # Angstrom; no two atoms of a molecule are


class XYZError(ValueError):
    """A file of molecules is damaged, or is none."""


class CutError(ValueError):
    """A frame of a file is not complete."""


@dataclasses.dataclass(frozen=True)
class Molecule:
    """One frame of a file of molecules, in Angstrom, eV, eV / Angstrom and e.

    The rows of `cell` are the edges of a cell that is periodic along all of them.
    """

    symbols: tuple[str, ...]
    positions: np.ndarray
    energy: float | None = None
    forces: np.ndarray | None = None
    charge: int = 0
    cell: np.ndarray | None = None


@dataclasses.dataclass(frozen=True)
class Molecules(Sequence[Molecule]):
    """The molecules of a file, with `notes` of what was found and what is left out.

    The `bonds` of all, pairs of atoms, are known from the topology of a trajectory.
    """

    frames: tuple[Molecule, ...]
    notes: tuple[str, ...] = ()
    bonds: tuple[tuple[int, int], ...] = ()

    def __len__(self) -> int:
        return len(self.frames)

    def __getitem__(self, index: Any) -> Any:
        return self.frames[index]


@dataclasses.dataclass(frozen=True)
class Frame:
    """A frame as it is in a file, with numbers and vectors by the file's keys."""

    where: str  # in the file
    names: Sequence[str]
    positions: np.ndarray
    entries: Mapping[str, Any]
    vectors: Mapping[str, np.ndarray]
    cell: np.ndarray | None = None


@functools.cache
def element(name: str) -> str | None:
    """Return the symbol that a name such as C, c, C1, or 6 means, or None."""
    if re.fullmatch("[0-9]{1,3}", name) and 1 <= int(name) <= len(SYMBOLS):
        return SYMBOLS[int(name) - 1]
    match = re.fullmatch(r"([A-Za-z]{1,2})(?:[0-9_].*)?", name)
    symbol = match.group(1).capitalize() if match else ""
    return "H" if symbol in ("D", "T") else symbol if symbol in SYMBOLS else None


def number(value: Any) -> float:
    """Return a number, also as 1.5D-01 of Fortran or 1.5*^-1 of QM9; else NaN."""
    if isinstance(value, str):
        value = value.strip().lower().replace("*^", "e").replace("d", "e")
        return float(value) if _NUMBER.fullmatch(value) else math.nan
    try:
        return float(np.asarray(value, float).reshape(()))
    except (TypeError, ValueError):
        return math.nan


def interpret(
    path: pathlib.Path, frames: Iterable[Frame], options: Mapping[str, Any]
) -> Molecules:
    """Return the molecules of frames, or raise `XYZError`."""
    try:
        return _molecules(frames, path.suffix.lower(), options)
    except ValueError as error:
        raise XYZError(f"{path}: {error}") from None


def _molecules(
    every: Iterable[Frame], ending: str, options: Mapping[str, Any]
) -> Molecules:
    if other := ", ".join(set(options) - set(READ_OPTIONS)):
        raise ValueError(f"`read_molecules` has no option {other}.")
    options = dict.fromkeys(READ_OPTIONS) | dict(options)
    frames, notes = [], []
    try:
        for frame in every:
            frames.append(frame)
            check_read_size("it", _FRAME * len(frames), "give fewer molecules")
    except CutError as error:
        if not (options["skip_incomplete"] and frames):
            remedy = f" --skip-incomplete reads the {len(frames)} frames before it."
            raise ValueError(f"{error}{remedy if frames else ''}") from None
        notes.append(f"Left out, with all that follows: {error}")
    if not frames:
        raise ValueError("it holds no molecules.")
    sizes = [len(frame.names) for frame in frames]
    if 1 in sizes and max(sizes) > 1:
        frames = [frame for frame in frames if len(frame.names) > 1]
        notes.append(f"{sizes.count(1)} frames of isolated atoms are left out.")
    symbols = _symbols(frames, options["species"], notes)
    keys = {
        kind: _key(frames, kind, options[f"{kind}_key"], ending, notes)
        for kind in ("energy", "forces")
    }
    units = _units(frames, options, keys, notes)
    wanted = options["formula"] and formula(atoms_of(options["formula"]))
    pairs = zip(frames, symbols, strict=True)
    chosen = [each for each in pairs if wanted is None or formula(each[1]) == wanted]
    molecules = [_molecule(*each, keys, units, options["charge"]) for each in chosen]
    others, of_i_pi = len(frames) - len(molecules), "CELL(abcABC)" in frames[0].entries
    if not molecules:
        has = ", ".join({formula(each): 0 for each in symbols})
        raise ValueError(f"it has no {wanted} (--formula), but {has}.")
    notes += [f"{others} frames are not {wanted}: left out."] * bool(others)
    notes += ["The CELL of i-PI is not read: if it counts, give `Lattice`."] * of_i_pi
    unread = filter(re.compile("(?i)temperature|weights?$").match, frames[0].entries)
    notes += [
        f"{key} is not read: --kelvin is of all, weights are 1." for key in unread
    ]
    charges = sorted({molecule.charge for molecule in molecules})
    notes += [f"Charge: {', '.join(map(str, charges))}."] * (charges != [0])
    _check_cells([frame for frame, _ in chosen])
    if (cell := molecules[0].cell) is not None:
        lengths = " x ".join(f"{edge:.4g}" for edge in np.linalg.norm(cell, axis=1))
        notes.append(f'A periodic cell, {lengths} Angstrom; pbc="F F F" if it is none.')
        if abs(np.linalg.det(cell)) < len(molecules[0].symbols):  # of diamond 6 times
            raise ValueError(f"the cell, {lengths} Angstrom, is too small: in nm?")
    _check_distances(molecules)
    return Molecules(tuple(molecules), tuple(notes))


def _molecule(frame, symbols, keys, units, charge) -> Molecule:
    positions = units["length"] * frame.positions
    value, forces = frame.entries.get(keys["energy"]), frame.vectors.get(keys["forces"])
    for kind, vectors in (("position", positions), ("force", forces)):
        vectors = np.zeros((1, 3)) if vectors is None else vectors
        bad = ~(np.abs(vectors) <= LARGEST)
        if bad.any():
            row = int(bad.any(axis=1).argmax())
            raise ValueError(
                f"{frame.where}, atom {row + 1}: expected a finite {kind} of at most "
                f"{LARGEST:g}, but got {vectors[row]}."
            )
    energy = None if value is None else units["energy"] * number(value)
    if energy is not None and not math.isfinite(energy):
        raise ValueError(f"{frame.where}: the energy {value!r} is no finite number.")
    found = (v for k, v in frame.entries.items() if v and _CHARGE.fullmatch(k.lower()))
    word = next(found, 0) if charge is None else charge
    word = re.sub("^([0-9]+)([+-])$", r"\2\1", str(np.squeeze(word)))  # as 2+
    if not number(word).is_integer():
        raise ValueError(f"{frame.where}: the charge {word!r} is not whole (--charge).")
    forces = None if forces is None else units["force"] * forces
    cell = None if frame.cell is None else units["length"] * frame.cell
    return Molecule(symbols, positions, energy, forces, int(number(word)), cell)


def _symbols(
    frames: Sequence[Frame], species: str | None, notes: list[str]
) -> list[tuple[str, ...]]:
    """Return the elements of each frame, of which isotopes and numbers are noted."""
    counts = collections.Counter(name for frame in frames for name in frame.names)
    numbers = sorted({int(name) for name in counts if name.isdecimal()})
    sizes, types = {len(frame.names) for frame in frames}, {}
    is_hydrogen = (numbers, sizes) == ([1], {2})
    if species is not None:
        words = tuple(species.replace(",", " ").split())
        atomic_numbers_of(words)
        if sizes == {len(words)} and len(words) not in numbers:
            return [words] * len(frames)
        if len(words) != max(numbers, default=0):
            raise ValueError(
                f"--species must name the elements of {max(numbers, default=0)} types, "
                f"or of {max(sizes)} atoms, but got {species!r}."
            )
        types = {str(i): word for i, word in enumerate(words, 1)}
    elif (2 in numbers or set(numbers) <= {1, 3, 4}) and numbers and not is_hydrogen:
        raise ValueError(
            f"the atoms are named {', '.join(map(str, numbers))}: if these are types, "
            f'give their elements, as --species "{" ".join("OHCNFS"[: numbers[-1]])}".'
        )
    symbol_of = {name: types.get(name) or element(name) for name in counts}
    for frame in frames:
        for atom, name in enumerate(frame.names, 1):
            if symbol_of[name] is None:
                raise ValueError(
                    f"{frame.where}, atom {atom}: there is no element {name[:20]!r} "
                    "(of a .pdb in columns 77 and 78): --species names those of all."
                )
    heavy = sum(counts[name] for name in counts if re.match("[DdTt]([0-9_]|$)", name))
    notes += [f"{heavy} atoms of D or T, heavy hydrogen, are read as H."] * bool(heavy)
    return [tuple(str(symbol_of[name]) for name in frame.names) for frame in frames]


def _key(
    frames: Sequence[Frame], kind: str, given: str | None, ending: str, notes: list[str]
) -> str | None:
    """Return what the file calls energies or forces; note what else it has."""
    part = "entries" if kind == "energy" else "vectors"
    keys = dict.fromkeys(key for frame in frames for key in getattr(frame, part))
    found = [k for k in keys if kind == "forces" or LIKELY.search(k.lower())]
    found = [key for key in found if not re.search("unit|velo|mom", key.lower())]
    names = {"energy", "energies"} if kind == "energy" else {"force", "forces"}
    names |= {kind[0]} if ending == ".npz" else set()  # as in MD17
    words = {key: set(re.split("[^a-z]+", key.lower())) for key in found}
    other = _OTHER | {"total"} if "kinetic" in " ".join(found).lower() else _OTHER
    usual = [key for key in found if words[key] & names and not words[key] & other]
    usual = [given] if given else usual if ending != ".sdf" else []
    if len(usual) > 1:
        raise ValueError(f"{kind}: {' or '.join(usual)}? Choose by --{kind}-key.")
    if given is not None and given not in keys:
        raise ValueError(f"--{kind}-key {given!r} is none of {', '.join(keys)}.")
    if re.search("per_?atom", given or "", re.I):
        raise ValueError(f"--{kind}-key {given!r} is of each atom: write the sums.")
    others = ", ".join([key for key in found if key not in usual][:9])
    notes += [f"Found, and not read: {others} (--{kind}-key chooses)."] * bool(others)
    return usual[0] if usual else None


def _units(
    frames: Sequence[Frame], options: Mapping[str, Any], keys: Mapping[str, str | None],
    notes: list[str],
) -> dict[str, float]:  # fmt: skip
    """Return the units of positions, energies and forces, given or in the file."""
    words = ((key or "").replace("_", " ") for key in keys.values())
    in_energy, in_forces = map(re.compile(rf"({ENERGY_UNIT})([^)\]]*)").search, words)
    units: dict[str, str] = {"energy": in_energy[1]} if in_energy else {}
    if in_forces and re.search(r"(?i)bohr|ang|\b(a0?|å|nm|pm)\b", in_forces[2]):
        units["force"] = in_forces[0]
    named = set()
    for frame in frames:
        for key, value in frame.entries.items():
            if " " in key and key != f"{keys['energy']} unit":
                continue  # of another number
            for kind in _UNITS if "unit" in key.lower() else ():
                if not re.search(_UNIT_OF[kind], f"{key} {value}".lower()):
                    continue
                named.add((kind, frame.where))
                if units.setdefault(kind, str(value)) != str(value):
                    raise ValueError(f"{frame.where}: {key} is not as before.")
    units |= {k: options[f"{k}_unit"] for k in _UNITS if options[f"{k}_unit"]}
    for kind in _UNITS:
        num = sum(kind == each for each, _ in named)
        if 0 < num < len(frames) and not options[f"{kind}_unit"]:
            raise ValueError(f"only {num} frames name a unit of {kind}: --{kind}-unit?")
    energy = in_forces[1] if in_forces else units.get("energy")
    if energy and "force" not in units:  # Hartree goes with Bohr
        atomic = unit_value(energy, "energy") == unit_value("a.u.", "energy")
        other = f"{energy}/{units.get('length', 'Angstrom')}"
        units["force"] = "Hartree/Bohr" if atomic else other
    for kind, unit in _UNITS.items():
        key = keys.get("forces" if kind == "force" else kind)
        unit = units.get(kind, f"{unit}, as no unit is named (--{kind}-unit)")
        notes += [f"Read `{key}`, in {unit}."] * (key is not None)
    notes += [f"Positions are in {units['length']}."] if "length" in units else []
    return {k: unit_value(units.get(k, unit), k) for k, unit in _UNITS.items()}


def _check_cells(frames: Sequence[Frame]) -> None:
    """Raise if frames have several cells, whose edges differ by more than rounding."""
    cells = [np.zeros((3, 3)) if each.cell is None else each.cell for each in frames]
    for frame, cell in zip(frames, cells, strict=True):
        if np.abs(cell - cells[0]).max() > _ROUNDED * np.abs(cells[0]).max():
            raise ValueError(
                f"the cell {cell.round(4).tolist()} of {frame.where} is not that of "
                f"{frames[0].where}: give frames of one cell, or all of none."
            )


def _check_distances(molecules: Sequence[Molecule]) -> None:
    """Raise if positions are no positions in Angstrom but, say, forces."""
    for index, each in enumerate(molecules):  # such as zeros of a file that is cut
        if (same := (np.diff(each.positions, axis=0) == 0).all(axis=1)).any():
            raise ValueError(
                f"frame {index} has atoms {same.argmax()} and {same.argmax() + 1} at "
                "one place: is the file cut? Leave such frames out."
            )
    some = molecules[:: max(1, len(molecules) // 50)]
    least = [pdist(m.positions[:500]).min() for m in some if len(m.symbols) > 1]
    if least and np.median(least) < _TOO_CLOSE:
        raise ValueError(
            f"the closest atoms are mostly {np.median(least):.2g} Angstrom apart, so "
            "these are no positions in Angstrom, but perhaps forces, velocities (of "
            "CP2K take -pos-1.xyz), fractions of a cell or in nm (--length-unit nm)."
        )
