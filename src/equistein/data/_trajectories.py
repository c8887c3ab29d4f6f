"""Files of molecules, also trajectories, which mdtraj reads."""

import dataclasses
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from equistein._check_arguments import check_arguments
from equistein._extras import require
from equistein._numbers import check_integers
from equistein.data._array_files import DataError
from equistein.molecules import (
    Frame,
    interpret,
    Molecules,
    read_molecules,
    TRAJECTORIES,
)

_CHUNK = 2_000  # frames that are read together
_BONDED, _LONGEST = 1.8, 3.5  # Angstrom, of bonds of all but metals, and of any


@check_arguments
def read_frames(path: pathlib.Path | str, **options: Any) -> Molecules:
    """Return the molecules of a file; of a trajectory whole ones, without their cell.

    These have the `bonds` of the topology, if it has some.

    Args:
        path: The file, of molecules or a trajectory: .xtc, .trr, .dcd, .nc or .h5.
        options: As of `es.molecules.read_molecules`; of a trajectory or a .pdb also
            `topology`, a file of the same atoms, such as a .pdb; `stride`, 2 for each
            second frame; and `atoms`, as mdtraj selects them, by default all.
    """
    path = pathlib.Path(path)
    topology, stride, atoms = map(options.get, ("topology", "stride", "atoms"))
    if not (topology or stride or atoms or path.suffix.lower() in TRAJECTORIES):
        return read_molecules(path, **options)
    mdtraj = require("mdtraj", "mdtraj", "openmm", DataError)
    check_integers("`read_frames`", stride=1 if stride is None else stride)
    frames = _frames(mdtraj, path, topology, stride or 1, atoms or "all")
    molecules = interpret(path, frames, options)
    top = mdtraj.load_topology(topology or str(path))
    part = top.subset(top.select(atoms or "all"))
    bonds = [(a.index, b.index) for a, b in part.bonds]
    note = f"The topology has {len(bonds) or 'no'} bonds"
    note += "." if bonds else ": atoms of one element count as alike."
    at = np.array([each.positions for each in molecules])
    alone = sorted(set(range(part.n_atoms)) - {atom for pair in bonds for atom in pair})
    near = np.sort(cdist(at[0, alone], at[0]))[:, 1:2] < _BONDED
    if bonds and near.any():
        raise DataError(
            f"{path}: the topology has no bond of atom {alone[int(near.argmax())]}, to "
            f"an atom within {_BONDED} Angstrom: add it (CONECT), or choose --atoms."
        )
    longest = [np.median(np.linalg.norm(at[:, i] - at[:, j], axis=1)) for i, j in bonds]
    if max(longest, default=0) > _LONGEST:
        raise DataError(
            f"{path}: a bond is {max(longest):.2g} Angstrom long: reorder the topology."
        )
    notes = (*molecules.notes, note)
    return dataclasses.replace(molecules, bonds=tuple(bonds), notes=notes)


@check_arguments
def write_frames(
    path: pathlib.Path | str,
    species: Sequence[str],
    positions: np.ndarray,
    *,
    topology: pathlib.Path | str | None = None,
    cell: Any = None,
) -> None:
    """Write molecules as a trajectory, whose ending names one of mdtraj's formats.

    Args:
        path: The file: .xtc, .trr, .dcd, .nc, .h5 or .pdb.
        species: The element of each atom.
        positions: Of each frame, in Angstrom, `(frame, atom, 3)`.
        topology: A file of the same atoms; by default all are in one residue.
        cell: The edges of a periodic cell as rows, in Angstrom.
    """
    path, endings = pathlib.Path(path), (*TRAJECTORIES, ".pdb")
    if path.suffix.lower() not in endings:
        raise DataError(f"{path} must end in {', '.join(endings)}.")
    mdtraj = require("mdtraj", "mdtraj", "openmm", DataError)
    at = np.asarray(positions, np.float32) / 10
    if topology is not None:
        top = mdtraj.load_topology(str(topology))
    else:
        top = mdtraj.Topology()
        residue = top.add_residue("MOL", top.add_chain())
        for i, symbol in enumerate(species, 1):
            element = mdtraj.element.Element.getBySymbol(symbol)
            top.add_atom(f"{symbol}{i}", element, residue)
    symbols = [atom.element.symbol for atom in top.atoms]
    if symbols != list(species) or at.shape[1:] != (len(symbols), 3):
        raise DataError(
            f"`topology` must have {' '.join(species)}, but has {' '.join(symbols)} "
            f"and `positions` {at.shape}: give the file that the data were read with."
        )
    trajectory = mdtraj.Trajectory(at, top)
    if cell is not None:
        cell = np.array(cell) * np.sign(np.linalg.det(cell))  # the same, right-handed
        trajectory.unitcell_vectors = np.tile(cell / 10, (len(at), 1, 1))
        axes, upper = np.linalg.qr(np.transpose(cell))  # in files a is along x
        trajectory.xyz = at @ (axes * np.sign(np.diag(upper)))
    trajectory.save(str(path))


def _frames(
    mdtraj: Any, path: pathlib.Path, topology: str | None, stride: int, atoms: str
) -> Iterator[Frame]:
    """Return frames in Angstrom, read in pieces."""
    has_topology = path.suffix.lower() in (".h5", ".pdb")
    if not has_topology and path.suffix.lower() not in TRAJECTORIES:
        raise ValueError("leave out --topology, --stride, --atoms: no trajectory.")
    if not (topology or has_topology):
        raise ValueError("give --topology, a .pdb say; save draws of ArviZ as .npy.")
    try:
        top, num = mdtraj.load_topology(topology or str(path)), 0
        chosen = top.select(atoms)
        wanted = set(chosen.tolist())
        names = [atom.element.symbol for atom in top.subset(chosen).atoms]
        more = {} if has_topology else {"top": top}
        for piece in mdtraj.iterload(str(path), chunk=_CHUNK, stride=stride, **more):
            if piece.unitcell_lengths is not None and piece.unitcell_lengths.all():
                if not piece.topology.n_bonds:
                    raise ValueError("no bonds (CONECT): give atoms in a cell as .xyz")
                own = [m for m in top.find_molecules() if wanted & {a.index for a in m}]
                if len(own) > 1:  # of which any image may be in the file
                    raise ValueError(
                        f"{len(own)} molecules in a cell, of unknown images: choose "
                        "--atoms, or save them, placed by `image_molecules`, without it"
                    )
                piece.make_molecules_whole(inplace=True)
            for at in 10 * piece.xyz[:, chosen].astype(float):
                yield Frame(f"frame {num}", names, at, {}, {})
                num += 1
    except Exception as error:  # a damaged file can raise anything
        text = f"no trajectory, or does not fit topology {topology} or atoms {atoms!r}"
        raise ValueError(f"{text}: {error!r}.") from None
