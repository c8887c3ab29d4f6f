"""Frames as they are in a file, and the molecules that they stand for."""

import collections
import dataclasses
import functools
import math
import pathlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from equistein.molecules._elements import (
    atomic_numbers_of,
    atoms_of,
    formula,
    SYMBOLS,
    unit_value,
)

LARGEST = 1e6  # Angstrom
LIKELY = re.compile("energ|forc|grad|^(e|e_?tot|e_?pot|toten|f)$")
"""What a key of energies or forces may be like, in small letters."""

_OTHER = set(  # words in keys of what is no energy or force of the whole molecule
    """free kinetic per atom atoms atomic unit units old std var error mae rmse weight
    formation binding atomization dispersion zero correction uncertainty key
    """.split()
)
_UNIT_OF = {"energy": "energ|e_", "force": "forc|f_", "length": "le|pos|dist|coord|r_"}
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?")
_TOO_CLOSE = 0.25  # Angstrom; no two atoms of a molecule are


class XYZError(ValueError):
    """A file of molecules is damaged, or is none."""


class CutError(XYZError):
    """A frame of a file is not complete."""


@dataclasses.dataclass(frozen=True)
class Molecule:
    """One frame of a file of molecules.

    Attributes:
        symbols: The element of each atom.
        positions: Its position, `(atom, 3)`, in Angstrom.
        energy: The energy in eV, or None.
        forces: The forces on its atoms in eV / Angstrom, `(atom, 3)`, or None.
        charge: The charge of the molecule, in units of e.
    """

    symbols: tuple[str, ...]
    positions: np.ndarray
    energy: float | None = None
    forces: np.ndarray | None = None
    charge: int = 0


@dataclasses.dataclass(frozen=True)
class Molecules(Sequence[Molecule]):
    """The molecules of a file, with `notes` of what was found and what is left out."""

    frames: tuple[Molecule, ...]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.frames)

    def __getitem__(self, index: Any) -> Any:
        return self.frames[index]


@dataclasses.dataclass(frozen=True)
class Frame:
    """A frame as it is in a file, with numbers and vectors by the file's keys."""

    place: Callable[[int], str]  # of an atom in the file, or of the frame (-1)
    names: Sequence[str]
    positions: np.ndarray
    entries: Mapping[str, Any]
    vectors: Mapping[str, np.ndarray]


@functools.cache
def element(name: str) -> str | None:
    """Return the symbol that a name such as C, c, C1, or 6 means, or None."""
    if re.fullmatch("[0-9]{1,3}", name) and 1 <= int(name) <= len(SYMBOLS):
        return SYMBOLS[int(name) - 1]
    match = re.fullmatch(r"([A-Za-z]{1,2})(?:[0-9_].*)?", name)
    symbol = match.group(1).capitalize() if match else ""
    symbol = {"D": "H", "T": "H"}.get(symbol, symbol)
    return symbol if symbol in SYMBOLS else None


def number(value: Any) -> float:
    """Return a number, also as 1.5D-01 of Fortran or 1.5*^-1 of QM9; else NaN."""
    if isinstance(value, str):
        word = value.strip().lower().replace("*^", "e").replace("d", "e")
        return float(word) if _NUMBER.fullmatch(word) else math.nan
    try:
        return float(np.asarray(value, float).reshape(()))
    except (TypeError, ValueError):
        return math.nan


def interpret(
    path: pathlib.Path, frames: Sequence[Frame], options: Mapping[str, Any], *said: str
) -> Molecules:
    """Return the molecules of frames: their elements, energies and forces.

    Raises:
        XYZError: If an element, a key or a unit is unknown or ambiguous.
    """
    notes = list(said)
    if not frames:
        raise XYZError(f"{path} holds no molecules.")
    sizes = [len(frame.names) for frame in frames]
    if 1 in sizes and max(sizes) > 1:
        frames = [frame for frame in frames if len(frame.names) > 1]
        notes.append(f"{sizes.count(1)} frames of isolated atoms are left out.")
    try:
        symbols = _symbols(frames, options["species"], notes)
        if options["formula"] is not None:
            frames, symbols = _of_formula(frames, symbols, options["formula"], notes)
        energy, forces = (
            _key(frames, kind, options[f"{kind}_key"], path.suffix, notes)
            for kind in ("energy", "forces")
        )
        units = _units(frames, options, {"energy": energy, "force": forces}, notes)
    except XYZError:
        raise
    except ValueError as error:
        raise XYZError(f"{path}: {error}") from None
    molecules = [
        _molecule(frame, elements, energy, forces, units, options["charge"])
        for frame, elements in zip(frames, symbols, strict=True)
    ]
    _check_positions(path, molecules)
    return Molecules(tuple(molecules), tuple(notes))


def _molecule(frame, symbols, energy, forces, units, charge) -> Molecule:
    positions = units["length"] * frame.positions
    if not np.all(np.abs(positions) <= LARGEST):
        raise XYZError(f"{frame.place(-1)}: a position is not below {LARGEST:g}.")
    value = frame.entries.get(energy)
    if value is not None and not math.isfinite(number(value)):
        word = str(value)[:40]
        raise XYZError(f"{frame.place(-1)}: the energy {word!r} is no finite number.")
    value = None if value is None else units["energy"] * number(value)
    vectors = frame.vectors.get(forces)
    vectors = None if vectors is None else units["force"] * vectors
    for key, word in frame.entries.items() if charge is None else ():
        if _words(key) in ({"charge"}, {"total", "charge"}):
            if not number(word).is_integer():
                raise XYZError(f"{frame.place(-1)}: the charge {word!r} is not whole.")
            charge = int(number(word))
    return Molecule(symbols, positions, value, vectors, charge or 0)


def _symbols(
    frames: Sequence[Frame], species: str | None, notes: list[str]
) -> list[tuple[str, ...]]:
    """Return the elements of each frame, of which isotopes and numbers are noted."""
    counts = collections.Counter(name for frame in frames for name in frame.names)
    numbers = sorted({int(name) for name in counts if name.isdecimal()})
    sizes = {len(frame.names) for frame in frames}
    types: dict[str, str] = {}
    if species is not None:
        words = tuple(species.replace(",", " ").split())
        atomic_numbers_of(words)
        if len(words) == max(numbers, default=0):
            types = {str(i): word for i, word in enumerate(words, 1)}
        elif sizes == {len(words)}:
            return [words] * len(frames)
        else:
            raise ValueError(
                f"--species must name the element of each of {max(numbers, default=0)} "
                f"types, or of each of {max(sizes)} atoms, but got {species!r}."
            )
    elif (2 in numbers and numbers != [2]) or (numbers == [1] and max(sizes) > 2):
        raise ValueError(
            f"the atoms are named {', '.join(map(str, numbers))}. Are these types, as "
            "LAMMPS writes them? Give their elements, such as --species "
            f'"{" ".join("OHCNFS"[: numbers[-1]])}".'
        )
    elif numbers:
        pairs = ", ".join(f"{n} is {element(str(n))}" for n in numbers)
        notes.append(f"Elements by atomic number: {pairs}.")
    symbols = []
    for frame in frames:
        known = [types.get(name) or element(name) for name in frame.names]
        if None in known:
            place, bad = frame.place(known.index(None)), frame.names[known.index(None)]
            raise XYZError(f"{place}: there is no element {bad[:20]!r}.")
        symbols.append(tuple(known))
    heavy = sum(counts[name] for name in counts if re.match("[DdTt]([0-9_]|$)", name))
    if heavy:
        notes.append(f"{heavy} atoms of D or T, heavy hydrogen, are read as H.")
    return symbols


def _of_formula(frames, symbols, wanted: str, notes: list[str]) -> tuple[list, list]:
    formulas = [formula(each) for each in symbols]
    here = [i for i, each in enumerate(formulas) if each == formula(atoms_of(wanted))]
    if not here:
        counts = collections.Counter(formulas).most_common(5)
        known = ", ".join(f"{each} ({num})" for each, num in counts)
        raise ValueError(f"no frame is {wanted} (--formula), but {known}.")
    if len(here) < len(frames):
        notes.append(f"{len(frames) - len(here)} frames are not {wanted}: left out.")
    return [frames[i] for i in here], [symbols[i] for i in here]


def _words(key: str) -> set[str]:
    """Return the words of a key such as REF_energy or dftEnergy, in small letters."""
    split = re.sub("(?<=[a-z])(?=[A-Z])", "_", key).lower()
    return {word for word in re.split("[^a-z]+", split) if word}


def _key(
    frames: Sequence[Frame], kind: str, given: str | None, ending: str, notes: list[str]
) -> str | None:
    """Return what the file calls energies or forces; note what else it has."""
    option, part = f"--{kind}-key", "entries" if kind == "energy" else "vectors"
    keys = dict.fromkeys(key for frame in frames for key in getattr(frame, part))
    found = [k for k in keys if LIKELY.search(k.lower()) and "unit" not in k.lower()]
    names = {"energy", "energies"} if kind == "energy" else {"force", "forces"}
    names |= {kind[0]} if ending == ".npz" else set()  # as in MD17
    usual = [key for key in found if _words(key) & names and not _words(key) & _OTHER]
    if given is None and len(usual) > 1 and ending != ".sdf":
        raise ValueError(
            f"{kind} may be {' or '.join(usual)}: choose by --energy-key and "
            "--forces-key (`energy_key` and `forces_key` in Python)."
        )
    if given is not None and given not in keys:
        known = ", ".join(keys) or "no others"
        raise ValueError(f"no frame has {given!r} ({option}), but {known}.")
    chosen = given or (usual[0] if usual and ending != ".sdf" else None)
    others = ", ".join([key for key in found if key != chosen][:9])
    if others:
        notes.append(f"Found, and not read: {others} ({option} chooses).")
    return chosen


def _units(
    frames: Sequence[Frame], options: Mapping[str, Any], keys: Mapping[str, str | None],
    notes: list[str],
) -> dict[str, float]:  # fmt: skip
    """Return the units of positions, energies and forces, given or in the file."""
    units = {kind: options[f"{kind}_unit"] or "" for kind in _UNIT_OF}
    for frame in frames:
        for key, value in frame.entries.items():
            for kind, words in _UNIT_OF.items() if "unit" in key.lower() else ():
                if (
                    re.search(f"(^|_)({words})", key.lower())
                    and not options[f"{kind}_unit"]
                ):
                    if units[kind] not in ("", str(value)):
                        raise XYZError(f"{frame.place(-1)}: {key} is not as before.")
                    units[kind] = str(value)
    defaults = {"length": "Angstrom", "energy": "eV", "force": "eV/Angstrom"}
    if units["energy"] and not units["force"]:  # Hartree goes with Bohr
        atomic = unit_value(units["energy"], "energy") == unit_value("a.u.", "energy")
        length = "Bohr" if atomic else units["length"] or "Angstrom"
        units["force"] = f"{units['energy']}/{length}"
    for kind, key in keys.items():
        if key is not None:
            unit = (
                units[kind] or f"{defaults[kind]}, as no unit is named (--{kind}-unit)"
            )
            notes.append(f"Read `{key}`, in {unit}.")
    if units["length"]:
        notes.append(f"Positions are in {units['length']}.")
    return {kind: unit_value(units[kind] or defaults[kind], kind) for kind in defaults}


def _check_positions(path: pathlib.Path, molecules: Sequence[Molecule]) -> None:
    """Raise if positions are no positions in Angstrom but, say, forces."""
    least = []
    for molecule in molecules[:: max(1, len(molecules) // 50)]:
        at = molecule.positions[:500]
        if len(at) > 1:
            gaps = np.linalg.norm(at[:, None] - at[None], axis=-1)
            least.append(gaps[np.triu_indices(len(at), 1)].min())
    if least and np.median(least) < _TOO_CLOSE:
        raise XYZError(
            f"{path}: the closest atoms are {np.median(least):.2g} Angstrom apart in "
            "most frames, so these are no positions in Angstrom. Forces or velocities "
            "(of CP2K take -pos-1.xyz, not -frc-1.xyz)? In nm (--length-unit nm)?"
        )
