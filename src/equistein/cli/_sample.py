"""`equistein sample`: new samples from a learned density, and the files they become."""

import dataclasses
import pathlib
import secrets
from collections.abc import Sequence
from typing import Annotated, Any

import jax.random as jr
import numpy as np
import tyro

from equistein import models
from equistein._files import PART, remove_at_end
from equistein.bridges import to_ase
from equistein.cli._output import answer
from equistein.data import (
    is_table,
    Table,
    TABLES,
    write_frames,
    write_image_folder,
    write_table,
)
from equistein.metrics import score_molecules
from equistein.molecules import formula, hands, symbols_of, TRAJECTORIES, write_xyz
from equistein.runs import RunFolder, UserError
from equistein.training import Fitted

_PRETRAINED = "pretrained:"
_SCORES = ("validity", "molecule_stability", "atom_stability", "num_isomers")
_MOLECULES = (".xyz", ".extxyz", ".xyz.gz", ".traj", ".db", ".pdb", *TRAJECTORIES)
_FOLDER = ""  # the suffix of a folder, of images


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sample:
    """Draw new samples from a learned energy.

    Attributes:
        run: The folder of an `equistein fit`; the file of a learned density; or one
            that comes with the package, such as pretrained:c5h8o.
        out: A new .npy or .npz file; of molecules also .xyz, .extxyz, .xyz.gz, .traj,
            .db, .pdb, .xtc, .trr, .dcd, .nc or .h5; after a table also .csv, .tsv or
            .parquet; of images a new folder of .png files, a name without an ending.
        num_samples: How many.
        label: The class to draw from, its number or its name; by default all.
        topology: For an .h5 or .pdb, a file of the same atoms with names and residues.
        seed: The source of randomness.
    """

    run: Annotated[pathlib.Path, tyro.conf.Positional]
    out: pathlib.Path
    num_samples: int = 512
    label: str | None = None
    topology: pathlib.Path | None = None
    seed: int = 0

    def execute(self) -> int:
        """Draw, and write the file at the end."""
        if self.num_samples < 1 or not 0 <= self.seed < 2**63:
            raise UserError(
                "--num-samples must be at least 1, and --seed from 0 to 2^63 - 1, but "
                f"got {self.num_samples} and {self.seed}."
            )
        fitted = load_density(self.run)
        numbers = fitted.about.get("atomic_numbers")
        species = symbols_of(numbers) if numbers else None
        label = _label(self.label, fitted)
        check_out(self.out, species, fitted)
        about = {**fitted.about, "topology": self.topology}
        key = jr.key(self.seed)
        part = f".{self.out.name}.{secrets.token_hex(4)}{PART}"
        with remove_at_end(self.out.with_name(part)) as folder:
            folder.mkdir()
            whole = folder / self.out.name
            if self.topology is not None:  # another molecule's fails before the draw
                center = np.asarray(fitted.reference.center)[None]
                write_samples(whole, center, label, species, about)
            points = fitted.sample(key, self.num_samples, label=label, progress=True)
            points = np.asarray(points)
            write_samples(whole, points, label, species, about)
            whole.replace(self.out)
        text = f"samples of shape {points.shape[1:]}"
        what = "molecules" if "cell" not in fitted.about else "cells"
        text = f"{what} of {formula(species)}" if species else text
        answer(
            f"{self.num_samples} {text}: {self.out}",
            out=self.out, num_samples=self.num_samples, shape=points.shape[1:],
        )  # fmt: skip
        if species and "cell" not in fitted.about:
            charge = int(fitted.about.get("charge", 0))
            scores = score_molecules(species, points, charge=charge)
            text = [f"{name} {scores[name]:.3g}" for name in _SCORES if name in scores]
            if "stereo_smiles" in fitted.about:
                signs = hands(species, points, tuple(fitted.about["stereo_smiles"]))
                scores["same_hand"] = float(np.mean(signs == 1))
                text.append(f"{np.sum(signs == 1)} with the hand of the data")
            kind = formula(species)
            answer(f"{kind} ({len(points)}): {', '.join(text)}", **{kind: scores})
        return 0


def load_density(path: pathlib.Path) -> Fitted:
    """Return the learned density of a run folder, a file, or the package."""
    name = str(path)
    if name.startswith(_PRETRAINED) and not path.exists():
        return models.pretrained(name.removeprefix(_PRETRAINED))
    if path.is_file() and path.suffix == ".eqx":
        return models.load(path)
    folder = RunFolder.open(path)
    if folder.read_json("config.json").get("command") != "fit":
        raise UserError(f"{path} is no folder of an `equistein fit`.")
    if not folder.has(RunFolder.MODEL):
        raise UserError(
            f"{path} is not finished: `equistein resume {path}`, or start a new fit."
        )
    return models.load(path / RunFolder.MODEL)


def _label(word: str | None, fitted: Fitted) -> int | None:
    """Return the number of the class that a word means."""
    names = list(fitted.about.get("classes", []))
    if word is None:
        return None
    if word in names:
        return names.index(word)
    numbered = any(name.isdecimal() for name in names)
    if word.removeprefix("-").isdecimal() and not numbered:
        return int(word)
    text = f"one of {', '.join(names)}" if names else "the number of a class"
    raise UserError(f"--label must be {text}, but got {word!r}.")


def check_out(out: pathlib.Path, species: Sequence[str] | None, fitted: Fitted) -> None:
    """Raise `UserError` unless the samples can become this file, or folder."""
    kinds = (".npy", ".npz", *(_MOLECULES if species else ()))
    kinds += TABLES if "columns" in fitted.about else ()
    shape = fitted.reference.center.shape
    images = len(shape) == 3 and shape[-1] in (1, 3)
    if _kind(out) not in kinds and not (images and _kind(out) == _FOLDER):
        folder = ", or have no ending, for a folder of .png images" if images else ""
        raise UserError(
            f"--out must end in one of {', '.join(kinds)}{folder}, but got {out}. "
            "Molecules and tables need data with elements, or names of columns."
        )
    if out.exists():
        raise UserError(f"{out} is there already; choose another --out.")
    if not out.absolute().parent.is_dir():
        raise UserError(f"There is no folder {out.absolute().parent}.")


def write_samples(
    path: pathlib.Path,
    points: np.ndarray,
    label: int | None,
    species: Sequence[str] | None,
    about: dict[str, Any],
) -> None:
    """Write samples in the format that the name of the file stands for."""
    kind = _kind(path)
    classes = None if label is None else np.full(len(points), label)
    if kind == _FOLDER:
        path.mkdir()
        white = np.quantile(points, 0.999)  # as of bytes
        write_image_folder(path, points / (white if white > 1.5 else 1))
    elif is_table(path):
        rows, names = points.reshape(len(points), -1), tuple(about.get("classes", ()))
        more = classes, names, about.get("class_column")
        write_table(path, Table(rows, tuple(about["columns"]), *more))
    elif kind == ".xyz" and species is not None:
        comment = f"sampled by equistein, charge={about.get('charge', 0)}"
        write_xyz(path, species, points, comment, about.get("cell"))
    elif species and (kind in TRAJECTORIES or about.get("topology")):
        more = {"topology": about.get("topology"), "cell": about.get("cell")}
        write_frames(path, species, points, **more)
    elif kind in _MOLECULES and species is not None:
        frames = to_ase(species, points, about.get("cell"))
        from ase.io import write

        write(path, frames)
    elif kind == ".npz":
        arrays = {"x": points, "y": classes, "species": species}
        known = {k: np.asarray(v) for k, v in arrays.items() if v is not None}
        np.savez(path, allow_pickle=False, **known)
    else:
        np.save(path, points)


def _kind(path: pathlib.Path) -> str:
    """Return the suffix, with that before it if the file is packed."""
    packed = "".join(path.suffixes[-2:])
    return packed if packed in _MOLECULES else path.suffix
