"""Files of molecules: .xyz, .pdb, and what ASE, RDKit and NumPy read."""

import contextlib
import gzip
import itertools
import os
import pathlib
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from equistein._check_arguments import check_arguments
from equistein._extras import require
from equistein._limits import check_read_size, max_bytes
from equistein._serialization import unpack_arrays
from equistein.molecules._elements import atomic_numbers_of
from equistein.molecules._frames import (
    CutError,
    element,
    ENERGY_UNIT,
    Frame,
    interpret,
    LARGEST,
    LIKELY,
    Molecules,
    number,
    XYZError,
)
from equistein.molecules._rdkit import rdkit

TRAJECTORIES = (".xtc", ".trr", ".dcd", ".nc", ".h5")
"""The endings of trajectories, which `es.data.read_frames` reads."""
_READ_BY_ASE = (".traj", ".db")
_LINE = 128  # bytes of memory
_REMEDY = "give fewer molecules"
_FIXED = "in samples all atoms move: fit the free ones, or `del atoms.constraints`."
_FIXES = re.compile(
    r"(is_)?(fix|frozen|freeze|constr)\w*|(?P<moves>move_?mask|movable|free|selec.*)"
)
_RESIDUES = """ALA ARG ASN ASP CYS GLN GLU GLY HIS ILE LEU LYS MET PHE PRO SER THR TRP
    TYR VAL HID HIE HIP CYX ASH GLH LYN ACE NME NMA HOH WAT SOL TIP A C G U DA DC
    DG DT""".split()  # whose atoms are named after elements of one letter
_HEAVY = 1.5  # u, beyond which hydrogen is D or T
_PERIODIC = (
    "a cell must be periodic along all three edges, given by 9 numbers as `Lattice`, "
    'or along none; if the molecule is isolated, write pbc="F F F" into an .xyz file, '
    "leave the cell or CRYST1 out, or unset `atoms.pbc`."
)
_NOT_PERIODIC = r"((f|false|no|none|[-+0.]+)([\s,]+|$))*"
_ALL_PERIODIC = r"((t|true|yes|1)([\s,]+|$)){3}"
_ENTRY = re.compile(  # a key, its value and, as in -76 Ha, the unit of an energy
    r"""(?<![^\s,;{])["']?((?:SCF )?[A-Za-z][\w.-]*(?: ?[(\[/][^\s=:"']*+)?)["']?"""
    r"(?:\s*[=:]\s*|\s+(?=-?[0-9]+[.][0-9]{3}))"  # E -76.3421
    r"""("[^"]*"|'[^']*'|\{[^}]*\}|\[[^\]]*\]"""
    r"""|(?:(?![,;}](?:\s|$|["']?[A-Za-z]\w*["']?\s*[=:]))\S)++)(?!\s*=)"""
    rf"(?:\s+[\[(]?({ENERGY_UNIT}[^\s=,;\])]*)(?!\s*=))?"
)
_MOTION = re.compile(  # of ORCA and i-PI behind other words
    r"(?i)(\W*|.*(aimd | (?=\w+{)))(forces?(?![ -]?field)|f_\w+(?={)|frc|veloc\w+"
    r"(?![ -]verlet| resc))\b(?!\s*([=<]|conv|bel|:? *\d))"
)
_POSITIONS = ("R", "coords", "coordinates", "positions", "pos", "xyz", "x")
_ELEMENTS = """z Z nuclear_charges atomic_numbers numbers charges species symbols
    elements atom_types atom_numbers atoms""".split()
_CELLS = ("lattice", "cell", "box")


@check_arguments
def is_molecules(path: str | os.PathLike[str]) -> bool:
    """Return whether a file holds molecules, by its name, or its arrays if an .npz."""
    path = pathlib.Path(path)
    if path.suffix.lower() == ".npz":
        return _names_of_arrays(path) is not None
    endings = ".xyz", ".xyz.gz", ".extxyz", ".extxyz.gz", ".pdb", ".sdf"
    return path.name.lower().endswith((*endings, *_READ_BY_ASE, *TRAJECTORIES))


@check_arguments
def read_molecules(path: str | os.PathLike[str], **options: Any) -> Molecules:
    """Return the molecules of a file: .xyz, .xyz.gz, .pdb, .sdf, .traj, .db or .npz.

    Energies and forces become eV and eV / Angstrom. RDKit reads .sdf, ASE .traj and
    .db. An .npz has names as of rMD17 or SchNet, such as `R`, `z`, `energies`, `F`.

    Options are what the file does not say: `energy_key` and `forces_key`, its words for
    these; `energy_unit`, `force_unit` and `length_unit`, such as kcal/mol, Hartree/Bohr
    and nm; `species`, the elements of numbered types or of all atoms, such as "O H";
    `charge`; `formula`, which of its molecules; and `skip_incomplete`, whether a file
    is read up to a frame that is cut.
    """
    path = pathlib.Path(path)
    if given := [n for n in ("topology", "stride", "atoms") if options.get(n)]:
        raise XYZError(f"{path}: `{given[0]}` is for `es.data.read_frames`.")
    readers = {".pdb": _pdb_frames, ".sdf": _sdf_frames, ".npz": _npz_frames}
    readers |= dict.fromkeys(_READ_BY_ASE, _ase_frames)
    return interpret(path, readers.get(path.suffix.lower(), _xyz_frames)(path), options)


@check_arguments
def from_atoms(atoms: Iterable[Any], **options: Any) -> Molecules:
    """Return molecules of `ase.Atoms`; the options are those of `read_molecules`."""
    frames = (_frame_of(each, f"frame {i}", {}) for i, each in enumerate(atoms))
    return interpret(pathlib.Path("atoms"), frames, options)


def _text_lines(path: pathlib.Path) -> tuple[list[str], bool, str]:
    """Return the lines, whether the last one has an end, and what is damaged."""
    check_read_size("it", 2 * path.stat().st_size, _REMEDY)
    content, most, damage = bytearray(), max_bytes() // 2 + 1, ""
    try:
        with (gzip.open if path.suffix.lower() == ".gz" else open)(path, "rb") as file:
            while len(content) < most and (line := file.readline(most)):
                content += line
    except (EOFError, zlib.error) as error:  # the lines before are whole
        damage = f"the file is cut or damaged: {error}."
    except OSError as error:
        raise ValueError(f"it cannot be read: {error}.") from None
    check_read_size("it", max(2 * len(content), _LINE * content.count(b"\n")), _REMEDY)
    encoding = "utf-16" if content[:1] in (b"\xff", b"\xfe") else "utf-8-sig"
    text = content.decode(encoding, "replace")  # all but comments are ASCII
    return text.rstrip().split("\n"), text[-1:].isspace(), damage


def _xyz_frames(path: pathlib.Path) -> Iterator[Frame]:
    lines, has_end, damage = _text_lines(path)
    at = num = 0
    while at < len(lines):
        count = lines[at].strip()
        if count in ("", ">"):  # ORCA writes the second between frames
            at += 1
            continue
        if not re.fullmatch("0*[1-9][0-9]{0,6}", count):
            raise ValueError(
                f"line {at + 1}: expected the number of atoms, but got {count[:40]!r}."
            )
        end = at + 2 + int(count)
        where = f"frame {num} (line {at + 1})"
        cut = CutError(f"{where}, of {count} atoms, is cut: {lines[-1][:60]!r}.")
        rows = [line.split() for line in lines[at + 2 : end]]
        # At the end of a file without a line end the last number may be cut as well.
        is_open = end == len(lines) and not has_end
        places = [len("".join(row[-1:]).partition(".")[2]) for row in rows if is_open]
        is_short = is_open and len({*places[:-1]}) == 1 and places[-1] < places[0]
        if len(rows) < int(count) or is_short:
            raise cut
        try:
            entries = _entries(lines[at + 1])
            cell, columns = _cell_of(entries), _columns(entries)
        except ValueError as error:
            raise ValueError(f"line {at + 2}: {error}") from None
        if len(rows[0]) == 4 and _MOTION.match(lines[at + 1]):
            raise ValueError(f"line {at + 2}: no positions (of CP2K take -pos-1.xyz).")
        least = max(column.stop for column in columns.values())
        species, is_plain = columns["species"].start, len(columns) == 2
        mass, names = columns.get("masses", columns.get("mass", slice(0))), []
        # A number behind an element may be of the element or the row, or a mark.
        tags = {re.sub("[.]0+$", "", "".join(row[1:2])) for row in rows}
        tagged = all(re.fullmatch("-?[0-9]+", tag) for tag in tags) and tags != {"0"}
        for line, row in enumerate(rows, at + 3):
            is_odd = is_plain and len(row) > least and (tagged or row[0].isdecimal())
            if len(row) < least and line == len(lines):
                raise cut
            if len(row) < least or is_odd or "," in "".join(row[columns["pos"]]):
                raise ValueError(
                    f"line {line}: expected an element and three coordinates, or "
                    f"{least} columns named by `Properties`, with decimal points, not "
                    f"commas, but got {' '.join(row)[:60]!r}."
                )
            is_heavy = row[species] == "H" and number("".join(row[mass])) > _HEAVY
            names.append("D" if is_heavy else row[species])
        for name, column in columns.items():
            _check_free(where, name, (word for row in rows for word in row[column]))
        width = min(map(len, rows))
        for stop in {7, width} if is_plain and width > 6 else ():
            columns[f"columns_{stop - 2}_to_{stop}"] = slice(stop - 3, stop)
        vectors = {
            name: np.array([[number(word) for word in row[column]] for row in rows])
            for name, column in columns.items() if column.stop - column.start == 3
        }  # fmt: skip
        yield Frame(where, names, vectors.pop("pos"), entries, vectors, cell)
        at, num = end, num + 1
    if damage:
        raise CutError(f"frame {num}: {damage}")


def _check_free(where: str, name: str, marks: Iterable[Any]) -> None:
    """Raise if a column such as `move_mask` or `fixed` marks an atom that is fixed."""
    found, off = _FIXES.fullmatch(name.lower()), ("f", "false", "0", "0.0")
    if found and bool(found["moves"]) in {str(mark).lower() in off for mark in marks}:
        raise ValueError(f"{where}, {name}: {_FIXED}")


def _columns(entries: Mapping[str, Any]) -> dict[str, slice]:
    """Return the columns that `Properties` names, or those of a plain file."""
    named = (v for k, v in entries.items() if k.lower() == "properties" and ":" in v)
    # One for each of x, y and z, such as fx:R:1:fy:R:1:fz:R:1, are a vector.
    thirds = r"([^:]*)x:R:1:\1y:R:1:\1z:R:1(?=:|$)"
    value = re.sub(thirds, r"\1xyz:R:3", next(named, "species:S:1:pos:R:3"))
    fields = re.findall("([^:]+):[A-Za-z]:([0-9]{1,3})(?::|$)", value)
    widths = {name: int(width) for name, width in fields}
    is_whole = 3 * len(widths) == value.count(":") + 1
    if not is_whole or (widths.get("species"), widths.get("pos")) != (1, 3):
        raise ValueError(f"cannot read {value[:60]!r}: take species:S:1:pos:R:3.")
    ends = np.cumsum([*widths.values()]).tolist()
    return dict(zip(widths, map(slice, [0, *ends], ends), strict=True))


def _entries(comment: str) -> dict[str, Any]:
    """Return what the second line of a frame holds by keys."""
    entries: dict[str, Any] = {}
    if re.search(r"ORCA-job|(?<!\S)xtb: [0-9]", comment):  # which name no unit
        entries["energy_unit"] = "Hartree"
    if re.search(r"\b(positions|x_\w+)\{atomic_unit", comment):  # of i-PI
        entries["length_unit"] = "Bohr"
    for key, word, unit in _ENTRY.findall(comment):
        value = word.strip("\"'{}[],;")
        entries |= {f"{key} unit": unit} if unit else {}
        before = entries.setdefault(key, value)
        if before != value and LIKELY.search(key.lower()):
            raise ValueError(f"{key} is there twice, {before} and {value}: keep one.")
    return entries


def _cell_of(entries: Mapping[str, str]) -> np.ndarray | None:
    """Return the edges of a periodic cell; raise unless all or none are periodic."""
    small = {key.lower(): value.lower() for key, value in entries.items()}
    lattice = next((small[key] for key in _CELLS if key in small), "")
    if re.fullmatch(_NOT_PERIODIC, small.get("pbc", lattice)):
        return None
    edges = np.array([number(word) for word in lattice.replace(",", " ").split()])
    spans = edges.size == 9 and 0 < abs(np.linalg.det(edges.reshape(3, 3))) < np.inf
    if not (spans and re.fullmatch(_ALL_PERIODIC, small.get("pbc", "t t t"))):
        raise ValueError(_PERIODIC)
    return edges.reshape(3, 3)


def _pdb_frames(path: pathlib.Path) -> Iterator[Frame]:
    lines = _text_lines(path)[0]
    names, at, num, size, charge = [], [], 0, 0, 0
    for index, line in enumerate([*lines, "END"], 1):
        record, cell = line[:6].strip(), [line[i : i + 9] for i in (6, 15, 24)]
        if record == "CRYST1" and any(number(length) > 1 for length in cell):
            raise ValueError(f"line {index}: {_PERIODIC}")
        if record in ("ATOM", "HETATM"):
            # Without an element in its columns, the name in a known residue has it.
            name = line[12:16] if line[17:20].strip() in _RESIDUES else ""
            if line[16:17] not in (" ", "A", "1", ""):
                raise ValueError(f"line {index}: leave in one alternate location, A.")
            given = re.sub("[^A-Za-z]", "", line[76:78])
            names.append(given or name.strip(" 0123456789")[:1])
            sign = re.fullmatch("([0-9][+-])|[+-][0-9]", line[78:80])
            charge += int(sign[0][:: -1 if sign[1] else 1]) if sign else 0
            whole = line if len(line) >= 54 else ""
            at.append([number(whole[column : column + 8]) for column in (30, 38, 46)])
        elif record in ("MODEL", "ENDMDL", "END") and names:
            is_short = len(lines[-1]) < 54 and lines[-1][:3] not in ("TER", "CON")
            if index > len(lines) and (len(names) < size or is_short):
                raise CutError(f"frame {num} is cut: the file ends in it.")
            yield Frame(f"frame {num}", names, np.array(at), {"charge": charge}, {})
            num, size, names, at, charge = num + 1, len(names), [], [], 0


def _sdf_frames(path: pathlib.Path) -> Iterator[Frame]:
    check_read_size("it", 2 * path.stat().st_size)
    chem = rdkit()
    for num, mol in enumerate(chem.SDMolSupplier(str(path), False, removeHs=False)):
        if mol is None:
            raise CutError(f"molecule {num} is cut or damaged.")
        if not mol.GetNumConformers() or not mol.GetConformer().Is3D():
            raise ValueError(f"molecule {num} has no positions in three dimensions.")
        atoms = [(atom.GetSymbol(), atom.GetIsotope()) for atom in mol.GetAtoms()]
        names = ["D" if each in (("H", 2), ("H", 3)) else each[0] for each in atoms]
        entries = mol.GetPropsAsDict() | {"charge": chem.GetFormalCharge(mol)}
        at = mol.GetConformer().GetPositions()
        yield Frame(f"molecule {num}", names, at, entries, {})


def _ase_frames(path: pathlib.Path) -> Iterator[Frame]:
    require("ase", "ASE", "ase")
    from ase.db import connect
    from ase.io import iread

    check_read_size("it", 2 * path.stat().st_size)
    frames, units = iread(path, index=":"), {}
    if path.suffix.lower() == ".db":  # of which `iread` gives no keys and data
        database = connect(path, serial=True)
        with contextlib.suppress(Exception):  # of a damaged file, told of below
            get = database.metadata.get  # of SchNetPack, say
            named = {"length": get("_distance_unit"), **get("_property_unit_dict", {})}
            units = {f"{name}_unit": unit for name, unit in named.items() if unit}
        rows = database.select()
        frames = (row.toatoms(add_additional_information=True) for row in rows)
    for num in itertools.count():
        try:
            atoms = next(frames, None)
        except Exception as error:  # a damaged file can raise anything
            raise CutError(f"frame {num} is cut or damaged: {error!r}.") from None
        if atoms is None:
            return
        yield _frame_of(atoms, f"frame {num}", units)


def _frame_of(atoms: Any, where: str, units: Mapping[str, str]) -> Frame:
    """Return the frame of `ase.Atoms`, with what its calculator and `info` hold."""
    if np.any(atoms.pbc) and not (np.all(atoms.pbc) and atoms.cell.rank == 3):
        raise ValueError(f"{where}: {_PERIODIC}")
    cell = np.array(atoms.cell[:]) if np.all(atoms.pbc) else None
    rules = [each for each in atoms.constraints if np.size(getattr(each, "index", 1))]
    if kinds := {type(each).__name__ for each in rules} - {"FixCom"}:
        raise ValueError(f"{where}, {', '.join(sorted(kinds))}: {_FIXED}")
    held = {**units, **atoms.info, **atoms.arrays}
    for name in ("data", "key_value_pairs"):  # of a row of a database
        held |= held.pop(name, None) or {}
    held |= getattr(atoms.calc, "results", {})
    vectors = {
        name: np.array(value, np.float64) for name, value in held.items()
        if np.shape(value) == (len(atoms), 3)
    }  # fmt: skip
    entries = {name: value for name, value in held.items() if np.size(value) == 1}
    is_heavy = (atoms.numbers == 1) & (atoms.get_masses() > _HEAVY)
    names = np.where(is_heavy, "D", atoms.get_chemical_symbols()).tolist()
    return Frame(where, names, vectors.pop("positions"), entries, vectors, cell)


def _names_of_arrays(path: pathlib.Path) -> tuple[str, str] | None:
    """Return the names of positions and elements, if any, in an .npz of molecules."""
    try:
        with zipfile.ZipFile(path) as archive:
            held = [name.removesuffix(".npy") for name in archive.namelist()]
            positions = next(name for name in _POSITIONS if name in held)
            elements = next((name for name in _ELEMENTS if name in held), "")
            with archive.open(f"{positions}.npy") as part:
                np.lib.format.read_magic(part)
                shape, *_ = np.lib.format.read_array_header_1_0(part)
    except Exception:  # a damaged file can raise nearly anything
        return None
    is_other = shape[2:] != (3,) or (positions == "x" and "y" in held)
    has_more = elements or re.search("(?im)energ|forc|^[ef]$", "\n".join(held))
    return None if is_other or not has_more else (positions, elements)


def _npz_frames(path: pathlib.Path) -> Iterator[Frame]:
    names, held = _names_of_arrays(path), "nothing"
    try:
        with path.open("rb") as file:
            arrays = unpack_arrays(file, "it")
        held = ", ".join(arrays)
        positions, elements = (arrays.pop(name) for name in names or ("R", "z"))
        positions = positions.astype(float)
        elements = np.broadcast_to(elements, positions.shape[:2]).astype(str)
        as_text = lambda x: x.astype(str) if x.dtype.kind == "S" else x
        arrays = {name: as_text(x) for name, x in arrays.items()}
    except Exception as error:  # a damaged file can raise nearly anything
        raise ValueError(
            f"it must hold positions (molecule, atom, 3) by one of the names "
            f"{', '.join(_POSITIONS)}, and an element for each atom by one of "
            f"{', '.join(_ELEMENTS)}, but has {held}: {error}."
        ) from None
    for name, x in arrays.items():
        if name.lower() in _CELLS and np.any(x):
            raise ValueError(_PERIODIC)
        is_mark = x.size % elements.shape[1] == 0  # of each atom, and no list of some
        _check_free("in all", name, x.ravel() if is_mark else [True, False])
    of_all = {n: x.ravel() for n, x in arrays.items() if x.size in (1, len(positions))}
    moved = {n: x for n, x in arrays.items() if x.shape == positions.shape}
    for name in set("E F energy energies forces".split()) & set(arrays):
        if name not in of_all and name not in moved:
            raise ValueError(f"the array {name} is not of {len(positions)} molecules.")
    may_be_types = names and names[1] in ("species", "atom_types")
    name_of = str if may_be_types else lambda name: element(name) or name
    for i, at in enumerate(positions):
        symbols = [name_of(each.removesuffix(".0")) for each in elements[i].tolist()]
        entries = {name: value[i % value.size] for name, value in of_all.items()}
        vectors = {name: value[i].astype(float) for name, value in moved.items()}
        yield Frame(f"molecule {i}", symbols, at, entries, vectors)


@check_arguments
def write_xyz(
    path: str | os.PathLike[str],
    symbols: Sequence[str],
    positions: np.ndarray,
    comment: str = "",
    cell: Any = None,
) -> None:
    """Write molecules with positions `(molecule, atom, 3)` into an .xyz file.

    The `comment` is the second line of each frame, with the edges of a periodic `cell`.
    """
    atomic_numbers_of(symbols)
    positions = np.asarray(positions, np.float64)
    bad = np.argwhere(~(np.abs(positions) <= LARGEST)).tolist()
    if positions.shape[1:] != (len(symbols), 3) or not positions.size or bad:
        raise ValueError(
            f"`positions` must be finite and at most {LARGEST:g}, and have shape "
            f"(molecule, {len(symbols)}, 3), with at least one molecule, but got "
            f"{positions.shape}, with {len(bad)} other numbers, as at {bad[:1]}."
        )
    row = "{:<2} {:15.8f} {:15.8f} {:15.8f}\n".format
    if cell is not None:
        lattice = " ".join(f"{x:.8f}" for x in np.ravel(cell))
        comment += f' Lattice="{lattice}" Properties=species:S:1:pos:R:3 pbc="T T T"'
    head = f"{len(symbols)}\n{' '.join(comment.split())}\n"
    with pathlib.Path(path).open("w") as file:
        for frame in positions:
            rows = (row(name, *at) for name, at in zip(symbols, frame, strict=True))
            file.write(head + "".join(rows))
