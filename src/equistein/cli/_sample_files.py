"""The files that samples become: of the kinds that data are read from."""

import pathlib
import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np

from equistein._files import PART
from equistein.bridges import to_ase
from equistein.data import is_table, Table, TABLES, write_image_folder, write_table
from equistein.molecules import write_xyz
from equistein.runs import UserError
from equistein.training import Fitted

_MOLECULES = (".xyz", ".extxyz", ".xyz.gz", ".traj", ".db", ".pdb")
_FOLDER = ""  # the suffix of a folder, of images


def check_out(out: pathlib.Path, species: Sequence[str] | None, fitted: Fitted) -> None:
    """Raise `UserError` unless the samples can become this file, or folder."""
    kinds = (".npy", ".npz", *(_MOLECULES if species else ()))
    kinds += TABLES if "columns" in fitted.about else ()
    shape = fitted.reference.center.shape
    images = len(shape) == 3 and shape[-1] in (1, 3)
    kind = _kind(out)
    if kind not in kinds and not (images and kind == _FOLDER):
        remedy = ""
        if kind in _MOLECULES:
            remedy = f" An {kind} file needs elements, which only data from one has."
        elif is_table(out):
            remedy = " A table needs names of columns, which only data from one has."
        folder = ", or have no ending, for a folder of .png images" if images else ""
        raise UserError(
            f"--out must end in one of {', '.join(kinds)}{folder}, but got {out}."
            f"{remedy}"
        )
    if out.exists():
        raise UserError(f"{out} is there already; choose another --out.")
    if not out.absolute().parent.is_dir():
        raise UserError(f"There is no folder {out.absolute().parent}.")


def part_of(out: pathlib.Path) -> pathlib.Path:
    """Return where to write what becomes a file, or folder, once it is whole."""
    kind = _kind(out)
    stem = out.name.removesuffix(kind)
    return out.with_name(f".{stem}.{secrets.token_hex(4)}{PART}{kind}")


def begin(path: pathlib.Path) -> None:
    """Make the file, or folder, empty: to see before the work whether that can be."""
    if _kind(path) == PART:
        path.mkdir()
    else:
        path.touch()


def write_samples(
    path: pathlib.Path,
    points: np.ndarray,
    label: int | None,
    species: Sequence[str] | None,
    about: dict[str, Any],
) -> None:
    """Write samples in the format that the name tells, where `begin` was."""
    kind = _kind(path)
    if path.is_dir():
        write_image_folder(path, points)
    elif is_table(path):
        classes = None if label is None else np.full(len(points), label)
        rows, names = points.reshape(len(points), -1), tuple(about.get("classes", ()))
        columns = tuple(about["columns"])
        write_table(path, Table(rows, columns, classes, names, about.get("label")))
    elif kind == ".xyz" and species is not None:
        write_xyz(path, species, points, "sampled by equistein")
    elif species is not None and kind in _MOLECULES:
        frames = to_ase(species, points)
        from ase.io import write

        path.unlink()  # which was only touched
        write(path, frames)
    elif kind == ".npz":
        arrays = {"x": points}
        if label is not None:
            arrays["y"] = np.full(len(points), label)
        if species is not None:
            arrays["species"] = np.array(species)
        np.savez(path, allow_pickle=False, **arrays)
    else:
        np.save(path, points)


def _kind(path: pathlib.Path) -> str:
    """Return the suffix, with what was packed if it was."""
    packed = "".join(path.suffixes[-2:])
    return packed if packed in _MOLECULES else path.suffix
