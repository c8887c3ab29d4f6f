"""Files of molecules: .xyz, .pdb, and what ASE, RDKit and NumPy read."""

import os
import pathlib
import re
import types
import zipfile
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from equistein._check_arguments import check_arguments
from equistein._limits import check_read_size, LimitError
from equistein.molecules._elements import SYMBOLS
from equistein.molecules._frames import (
    CutError,
    Frame,
    interpret,
    LIKELY,
    Molecules,
    number,
    XYZError,
)
from equistein.molecules._rdkit import rdkit
from equistein.molecules._xyz import FIXED, text_lines, xyz_frames

READ_BY_ASE = (".traj", ".db")
READ_OPTIONS = (
    "energy_key", "forces_key", "energy_unit", "force_unit", "length_unit", "species",
    "charge", "formula", "skip_incomplete",
)  # fmt: skip
"""What `read_molecules` takes where a file does not say it."""

_POSITIONS = ("R", "coords", "coordinates", "positions", "pos", "xyz", "x")
_ELEMENTS = (
    "z", "Z", "nuclear_charges", "atomic_numbers", "numbers", "charges", "species",
)  # fmt: skip
_RESIDUES = set(  # whose atoms are H, C, N, O, P or S, the first letter of their names
    """ALA ARG ASN ASP CYS GLN GLU GLY HIS ILE LEU LYS MET PHE PRO SER THR TRP TYR VAL
    ASH CYM CYX GLH HID HIE HIP HSD HSE HSP LYN ACE NME NHE NMA NH2 FOR A C G U T DA DC
    DG DT RA RC RG RU HOH WAT SOL TIP TIP3 TP3 SPC
    """.split()
)


class MissingASE(ImportError):
    """ASE is not installed."""


@check_arguments
def is_molecules(path: str | os.PathLike[str]) -> bool:
    """Return whether a file holds molecules, by its name, or its arrays if an .npz."""
    path = pathlib.Path(path)
    if path.suffix.lower() == ".npz":
        return _names_of_arrays(path) is not None
    endings = ("xyz", "xyz.gz", "extxyz", "extxyz.gz", "pdb", "sdf", *READ_BY_ASE)
    return path.name.lower().endswith(tuple(f".{e.strip('.')}" for e in endings))


@check_arguments
def read_molecules(path: str | os.PathLike[str], **options: Any) -> Molecules:
    """Return the molecules of a file: .xyz, .xyz.gz, .pdb, .sdf, .traj, .db or .npz.

    Energies and forces become eV and eV / Angstrom. An .sdf is read by RDKit, .traj and
    .db by ASE. The arrays of an .npz have the names of rMD17 or SchNet: positions
    `coords` or `R`, atomic numbers `nuclear_charges` or `z`, energies and forces.

    Args:
        path: The file.
        options: What the file does not say: `energy_key` and `forces_key`, its words
            for these; `energy_unit`, `force_unit` and `length_unit`, such as kcal/mol,
            Hartree/Bohr and nm; `species`, the elements of numbered types or of all
            atoms, such as "O H"; `charge`; `formula`, which of its molecules; and
            `skip_incomplete`, whether frames that are cut are left out.

    Raises:
        XYZError: If it is damaged, cut or periodic, or a key or unit is not clear.
        MissingASE: If it needs ASE, which is not installed. Or `MissingRDKit`.
    """
    path, frames, notes = pathlib.Path(path), [], []
    readers = {".pdb": _pdb_frames, ".sdf": _sdf_frames, ".npz": _npz_frames}
    readers |= dict.fromkeys(READ_BY_ASE, _ase_frames)
    known = _with_defaults(options)
    try:
        read = readers.get(path.suffix.lower(), xyz_frames)
        for frame in read(path, known["forces_key"]):
            if isinstance(frame, Frame):
                frames.append(frame)
            elif known["skip_incomplete"]:
                notes.append(f"Left out: {frame}")
            else:
                raise XYZError(
                    f"{frame} The {len(frames)} frames before it are whole: leave it "
                    "out by --skip-incomplete (`skip_incomplete` in Python)."
                )
    except LimitError as error:
        raise XYZError(str(error)) from None
    return interpret(path, frames, known, *notes)


@check_arguments
def from_atoms(atoms: Iterable[Any], **options: Any) -> Molecules:
    """Return molecules of `ase.Atoms`; the options are those of `read_molecules`."""
    frames = [_frame_of(each, f"frame {i}") for i, each in enumerate(atoms)]
    return interpret(pathlib.Path("atoms"), frames, _with_defaults(options))


def _with_defaults(options: dict[str, Any]) -> dict[str, Any]:
    other = ", ".join(set(options) - set(READ_OPTIONS))
    if other:
        raise ValueError(f"`read_molecules` has no option {other}.")
    return dict.fromkeys(READ_OPTIONS) | options


def _pdb_frames(path: pathlib.Path, key: str | None) -> Iterator[Frame | CutError]:
    lines, is_ended = text_lines(path)
    rows: list[int] = []
    num = size = 0
    for index, line in enumerate([*lines, "END"]):
        record, cell = line[:6].strip(), [line[i : i + 9] for i in (6, 15, 24)]
        if record == "CRYST1" and any(number(length) > 1 for length in cell):
            raise XYZError(
                f"{path}, line {index + 1}: a periodic cell is not supported; leave "
                "CRYST1 out if the molecule is isolated."
            )
        if record in ("ATOM", "HETATM"):
            rows.append(index)
        elif record in ("MODEL", "ENDMDL", "END") and rows:
            at = [[number(lines[i][c : c + 8]) for c in (30, 38, 46)] for i in rows]
            ends = np.array([len(lines[i]) >= 54 for i in rows])
            whole = ends & np.isfinite(at).all(axis=1)
            place = f"{path}, line {rows[int(whole.argmin())] + 1}"
            is_last = index == len(lines)
            if is_last and (len(rows) < size or not (is_ended or whole[-1])):
                yield CutError(f"{place}: frame {num} is cut: the file ends in it.")
                return
            if not whole.all():
                raise XYZError(f"{place}: columns 31 to 54 are no coordinates.")
            names = [_pdb_element(path, i, lines[i]) for i in rows]
            yield Frame(lambda _, place=place: place, names, np.array(at), {}, {})
            rows, num, size = [], num + 1, len(rows)


def _pdb_element(path: pathlib.Path, index: int, line: str) -> str:
    """Return an element by its columns, else by the names of atom and residue."""
    written = line[76:78].strip().capitalize()
    if written in ("D", *SYMBOLS):
        return written
    name, residue = line[12:16].strip(), line[17:21].strip().upper()
    letters = re.sub("[^A-Z].*", "", name.upper().lstrip("0123456789'\""))
    one, two = letters[:1], letters[:2].capitalize()
    if residue in _RESIDUES:
        return one
    known = [symbol for symbol in dict.fromkeys((one, two)) if symbol in SYMBOLS]
    is_ion = re.sub("[^A-Z]", "", residue) == letters  # whose residue has its name
    known = [two] if two in known and (is_ion or two in ("Br", "Cl")) else known
    if len(known) != 1:
        raise XYZError(
            f"{path}, line {index + 1}: the atom {name!r} of the residue {residue!r} "
            f"may be {' or '.join(known) or 'anything'}: write the elements into "
            "columns 77 and 78."
        )
    return known[0]


def _sdf_frames(path: pathlib.Path, key: str | None) -> Iterator[Frame | CutError]:
    check_read_size(str(path), 2 * path.stat().st_size)
    chem = rdkit()
    supplier = chem.SDMolSupplier(str(path), sanitize=False, removeHs=False)
    for num, mol in enumerate(supplier):
        where = f"{path}, molecule {num}"
        if mol is None:
            yield CutError(f"{where} is cut or damaged.")
            continue
        if not mol.GetNumConformers() or not mol.GetConformer().Is3D():
            raise XYZError(f"{where} has no positions in three dimensions.")
        atoms = list(mol.GetAtoms())
        names = ["D" if a.GetIsotope() == 2 else a.GetSymbol() for a in atoms]
        entries = mol.GetPropsAsDict() | {"charge": chem.GetFormalCharge(mol)}
        at = mol.GetConformer().GetPositions()
        yield Frame(lambda _, where=where: where, names, at, entries, {})


def _ase_frames(path: pathlib.Path, key: str | None) -> Iterator[Frame | CutError]:
    ase()
    from ase.io import iread

    check_read_size(str(path), 2 * path.stat().st_size)
    num = 0
    try:
        for atoms in iread(path, index=":"):
            yield _frame_of(atoms, f"{path}, frame {num}")
            num += 1
    except XYZError:
        raise
    except Exception as error:  # a damaged file can raise anything
        reason = f"{type(error).__name__}: {error}"
        if not num:
            raise XYZError(f"{path} cannot be read by ASE: {reason}.") from None
        yield CutError(f"{path}: frame {num} is cut or damaged ({reason}).")


def _frame_of(atoms: Any, where: str) -> Frame:
    """Return the frame of `ase.Atoms`, with what its calculator and `info` hold."""
    if np.any(atoms.pbc):
        raise XYZError(
            f"{where} is periodic, which is not supported; if it is isolated, set "
            "`atoms.pbc = False`."
        )
    kinds = {type(each).__name__ for each in atoms.constraints} - {"FixCom"}
    if kinds:
        raise XYZError(f"{where}, {', '.join(sorted(kinds))}: {FIXED}")
    held = {**atoms.info, **atoms.arrays}
    for name in ("data", "key_value_pairs"):  # of a row of a database
        held |= held.pop(name, None) or {}
    held |= getattr(atoms.calc, "results", {})
    vectors = {
        name: np.array(value, np.float64) for name, value in held.items()
        if np.shape(value) == (len(atoms), 3) and LIKELY.search(name.lower())
    }  # fmt: skip
    entries = {name: value for name, value in held.items() if np.size(value) == 1}
    names = [
        "D" if atom.symbol == "H" and atom.mass > 1.5 else atom.symbol for atom in atoms
    ]
    at = np.array(atoms.positions, np.float64)
    return Frame(lambda _: where, names, at, entries, vectors)


def _names_of_arrays(path: pathlib.Path) -> tuple[str, str] | None:
    """Return the names of positions and elements in an .npz file, if it has both."""
    try:
        with zipfile.ZipFile(path) as archive:
            held = [name.removesuffix(".npy") for name in archive.namelist()]
            positions = next(name for name in _POSITIONS if name in held)
            elements = next(name for name in _ELEMENTS if name in held)
            with archive.open(f"{positions}.npy") as part:
                np.lib.format.read_magic(part)
                shape, *_ = np.lib.format.read_array_header_1_0(part)
    except Exception:  # a damaged file can raise nearly anything
        return None
    has_classes = positions == "x" and "y" in held
    return None if has_classes or shape[2:] != (3,) else (positions, elements)


def _npz_frames(path: pathlib.Path, key: str | None) -> Iterator[Frame]:
    names, held = _names_of_arrays(path), "nothing"
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(part.file_size for part in archive.infolist())
        check_read_size(str(path), size)
        with np.load(path, allow_pickle=False) as stored:
            held = ", ".join(stored.files)
            arrays = {name: stored[name] for name in stored.files}
        positions, elements = (arrays.pop(name) for name in names or ("R", "z"))
        num, atoms, _ = positions.shape
        whole = elements.astype(int) if elements.dtype.kind == "f" else elements
        elements = np.broadcast_to(whole, (num, atoms))
    except LimitError:
        raise
    except Exception as error:  # a damaged file can raise nearly anything
        raise XYZError(
            f"{path} must hold positions (molecule, atom, 3) by one of the names "
            f"{', '.join(_POSITIONS)}, and an element for each atom by one of "
            f"{', '.join(_ELEMENTS)}, but has {held}: {error}."
        ) from None
    for i in range(num):
        here = elements[i].astype(str) != "0"  # small molecules are filled up by zeros
        vectors = {
            name: value[i][here].astype(float) for name, value in arrays.items()
            if value.shape == positions.shape
        }  # fmt: skip
        entries = {
            name: value.ravel()[i] if value.size == num else value
            for name, value in arrays.items() if value.size in (1, num)
        }  # fmt: skip
        names, at = elements[i][here].astype(str), positions[i][here].astype(float)
        where = f"{path}, molecule {i}"
        yield Frame(lambda _, w=where: w, names.tolist(), at, entries, vectors)


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
