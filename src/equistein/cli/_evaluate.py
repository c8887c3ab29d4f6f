"""`equistein evaluate`: energies, scores and their errors at the points of a file."""

import dataclasses
import pathlib
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
import tyro

from equistein.cli._fit import options_of
from equistein.cli._output import answer, say, write_numbers
from equistein.cli._sample import load_density
from equistein.data import (
    describe,
    is_table,
    read_frames,
    read_image_folder,
    read_points,
    read_table,
    stack_molecules,
)
from equistein.energies import values_at
from equistein.models import Problem
from equistein.molecules import (
    BOLTZMANN,
    formula,
    is_molecules,
    READ_OPTIONS,
    symbols_of,
)
from equistein.plotting import boxes, parity
from equistein.runs import RunFolder, UserError
from equistein.training import Fitted

_SHOWN = 5_000  # numbers in a picture
_FRAMES_SHOWN = 300
ReadOptions = options_of(Problem, (*READ_OPTIONS, "sep", "decimal"))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evaluate:
    """Evaluate a learned energy at the points of a file.

    Energies are up to a constant: errors are of energies minus their mean.

    Attributes:
        run: The folder of an `equistein fit`, the file of a learned density, or
            pretrained:c5h8o.
        file: Molecules, in any order of atoms, a table, arrays or a folder of images,
            as for `equistein fit`.
        kelvin: The temperature of these data, by default that of the fit, which is the
            unit of its energies; of a fit without one, also that.
        out: A new or empty folder for evaluate.csv, evaluate.npz and pictures; by
            default `evaluate` in the run's.
        reading: How a file is read, as by `equistein fit`.
    """

    run: Annotated[pathlib.Path, tyro.conf.Positional]
    file: Annotated[pathlib.Path, tyro.conf.Positional]
    kelvin: float | None = None
    out: pathlib.Path | None = None
    reading: Annotated[ReadOptions, tyro.conf.arg(name="")] = ReadOptions()  # type: ignore

    def execute(self) -> int:
        """Evaluate, write the folder, and print a table of errors."""
        fitted, out = load_density(self.run), self.out
        if out is None:
            beside = self.run if self.run.is_dir() else self.run.parent
            out = beside / "evaluate"
        kelvin = fitted.about.get("kelvin") if self.kelvin is None else self.kelvin
        if kelvin is not None and not 0 < kelvin < np.inf:
            raise UserError(f"--kelvin must be a positive number, but got {kelvin}.")
        arrays = _read(self.file, fitted, kelvin, dict(vars(self.reading)))
        points = fitted.group.project_points(jnp.asarray(arrays["x"], float))
        both = values_at(jax.value_and_grad(fitted.log_density), points)
        energies, scores = -np.asarray(both[0]), np.asarray(both[1])
        arrays |= {"energy_kT": energies.astype(float), "scores": scores}
        if "atomic_numbers" in fitted.about and kelvin is not None:
            unit = BOLTZMANN * (fitted.about.get("kelvin") or kelvin)
            arrays |= {"energy_eV": unit * energies, "forces": unit * scores}
        errors, pictures = _compare(arrays, fitted.about.get("atomic_numbers", ()))
        folder = RunFolder.create(out)
        np.savez(out / "evaluate.npz", allow_pickle=False, **arrays)
        columns = {k: v for k, v in arrays.items() if v.ndim == 1}
        rows = np.stack(list(columns.values()), axis=1)
        head = ",".join(columns)
        np.savetxt(out / "evaluate.csv", rows, "%.9g", ",", header=head, comments="")
        described = {"file": str(self.file), "num_points": len(points), **errors}
        table = [f"{name:<40}{value:>12.4g}" for name, value in errors.items()]
        answer("\n".join([f"{len(points)} points of {self.file}", *table]), **described)
        write_numbers(folder, described, pictures)
        return 0


def _read(
    path: pathlib.Path, fitted: Fitted, kelvin: float | None, options: dict[str, Any]
) -> dict[str, np.ndarray]:
    """Return the points `x`, and of molecules energies and forces where known."""
    shape = fitted.reference.center.shape
    of_table = {name: options.pop(name) for name in ("sep", "decimal")}
    if is_molecules(path):
        symbols = symbols_of(fitted.about.get("atomic_numbers", ()))
        frames = read_frames(path, **options)
        for index, frame in enumerate(frames):
            if sorted(frame.symbols) != sorted(symbols):
                raise UserError(
                    f"{path}: the frame at index {index} is {formula(frame.symbols)}, "
                    f"but the fit is of {formula(symbols) or 'no molecules'}. Give "
                    "frames of the same formula."
                )
        mine, theirs = fitted.about.get("cell"), frames[0].cell
        if (mine is None) != (theirs is None) or not np.allclose(
            mine or 0, 0 if theirs is None else theirs, rtol=1e-4
        ):
            raise UserError(f"{path} has the cell {theirs}, but the fit is of {mine}.")
        names = ("x", "file_energy_eV", "file_forces")
        bonds = getattr(fitted.group, "bonds", ())
        x, energies, forces = stacked = stack_molecules(frames, symbols, bonds)
        lines = frames.notes
        if len(x) > 1:
            found = describe(
                x, group=fitted.group, species=symbols, energies=energies,
                forces=forces, kelvin=kelvin, charge=frames[0].charge, notes=lines,
            )  # fmt: skip
            lines = [line for line in found.lines if line not in found.warnings]
        say("\n".join(lines))
        pairs = zip(names, stacked, strict=True)
        return {name: values for name, values in pairs if np.isfinite(values).any()}
    if given := [f"--{k.replace('_', '-')}" for k, v in options.items() if v]:
        raise UserError(f"{', '.join(given)}: for molecules, but {path} has none.")
    if path.is_dir():
        points = read_image_folder(path)[0]
    elif is_table(path):
        points = read_table(path, fitted.about.get("columns"), **of_table).points
    else:
        points = read_points(path)
    axes = [tuple(n for n in each if n > 1) for each in (points.shape[1:], shape)]
    if points[0].size != np.prod(shape) or (points.ndim > 2 and axes[0] != axes[1]):
        raise UserError(
            f"{path} holds points of shape {points.shape[1:]}, but this energy is of "
            f"points of shape {shape}: give data as those of the fit."
        )
    return {"x": points.reshape(-1, *shape)}


def _compare(
    arrays: dict[str, np.ndarray], numbers: Any
) -> tuple[dict[str, float], dict[str, Any]]:
    """Return errors, and pictures, of energies and forces that the file has as well."""
    errors: dict[str, float] = {}
    panels, pictures = {}, {}
    if {"energy_eV", "file_energy_eV"} <= set(arrays):
        known = np.isfinite(arrays["file_energy_eV"])
        pair = [arrays[k][known] for k in ("file_energy_eV", "energy_eV")]
        exact, learned = (values - values.mean() for values in pair)
        panels["energy minus its mean [eV]"] = exact[:_SHOWN], learned[:_SHOWN]
        of_atom = lambda gaps: 1_000 * float(np.abs(gaps).mean()) / len(numbers)
        errors["energy: mean error [meV/atom]"] = of_atom(learned - exact)
        errors["energy: error of a constant [meV/atom]"] = of_atom(exact)
    if {"forces", "file_forces"} <= set(arrays):
        known = np.isfinite(arrays["file_forces"]).all(axis=(1, 2))
        exact, learned = arrays["file_forces"][known], arrays["forces"][known]
        gaps, symbols = np.abs(learned - exact), np.array(symbols_of(numbers))
        panels["force [eV/Å]"] = exact.ravel()[:_SHOWN], learned.ravel()[:_SHOWN]
        errors["force: mean error [eV/Å]"] = float(gaps.mean())
        errors["force: error of zero [eV/Å]"] = float(np.abs(exact).mean())
        of_elements = {s: gaps[:, symbols == s] for s in dict.fromkeys(symbols)}
        for symbol, each in of_elements.items():
            errors[f"force on {symbol}: mean error [eV/Å]"] = float(each.mean())
        means = {s: e.mean(axis=(1, 2))[:_FRAMES_SHOWN] for s, e in of_elements.items()}
        pictures["elements"] = boxes(means, "mean force error of a frame [eV/Å]")
    if panels:
        pictures["parity"] = parity(panels)
    return errors, pictures
