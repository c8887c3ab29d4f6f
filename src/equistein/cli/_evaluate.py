"""`equistein evaluate`: energies, scores and their errors at the points of a file."""

import dataclasses
import pathlib
from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import tyro

from equistein.cli._output import answer, finite
from equistein.cli._sample import load_density
from equistein.data import is_table, read_image_folder, read_points, read_table
from equistein.molecules import (
    BOLTZMANN,
    formula,
    is_molecules,
    read_molecules,
    symbols_of,
)
from equistein.plotting import boxes, parity
from equistein.runs import RunFolder, UserError, write_figures
from equistein.training import Fitted

_SHOWN = 5_000  # numbers in a picture
_FRAMES_SHOWN = 300


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evaluate:
    """Evaluate a learned energy at the frames or rows of a file.

    Energies are up to a constant: errors are of energies minus their mean.

    Attributes:
        run: The folder of an `equistein fit`, the file of a learned density, or
            pretrained:c5h8o.
        file: Molecules, in any order of atoms, a table, arrays or a folder of images,
            as for `equistein fit`.
        kelvin: The temperature of the data, for energies in eV and forces in eV /
            Angstrom; by default that of the fit.
        out: A new or empty folder for evaluate.csv, evaluate.npz and pictures; by
            default `evaluate` in the run's.
    """

    run: Annotated[pathlib.Path, tyro.conf.Positional]
    file: Annotated[pathlib.Path, tyro.conf.Positional]
    kelvin: float | None = None
    out: pathlib.Path | None = None

    def execute(self) -> int:
        """Evaluate, write the folder, and print a table of errors."""
        fitted, out = load_density(self.run), self.out
        if out is None:
            beside = self.run if self.run.is_dir() else self.run.parent
            out = beside / "evaluate"
        kelvin = fitted.about.get("kelvin") if self.kelvin is None else self.kelvin
        if kelvin is not None and not 0 < kelvin < np.inf:
            raise UserError(f"--kelvin must be a positive number, but got {kelvin}.")
        arrays = _read(self.file, fitted)
        points = fitted.group.project_points(jnp.asarray(arrays["x"], float))
        energies, scores = map(np.asarray, _values(fitted.energy, points))
        arrays |= {"energy_kT": energies.astype(float), "scores": scores}
        if "atomic_numbers" in fitted.about and kelvin is not None:
            unit = BOLTZMANN * kelvin
            arrays |= {"energy_eV": unit * energies, "forces": unit * scores}
        errors, pictures = _compare(arrays, fitted.about.get("atomic_numbers", ()))
        folder = RunFolder.create(out)
        np.savez(out / "evaluate.npz", allow_pickle=False, **arrays)
        columns = {k: v for k, v in arrays.items() if v.ndim == 1}
        rows = np.stack(list(columns.values()), axis=1)
        head = ",".join(columns)
        np.savetxt(out / "evaluate.csv", rows, "%.9g", ",", header=head, comments="")
        described = {"file": str(self.file), "num_points": len(points), **errors}
        folder.write_json("metrics.json", finite(described))
        write_figures(folder, pictures)
        folder.release()
        table = [f"{name:<40}{value:>12.4g}" for name, value in errors.items()]
        answer("\n".join([f"{len(points)} points of {self.file}", *table]), **described)
        answer(f"Numbers and pictures: {out}", out=out)
        return 0


@eqx.filter_jit
def _values(energy: Any, points: Any) -> tuple[Any, Any]:
    """Return energies and scores, in blocks of 256 points."""
    both = lambda x: (energy(x), -jax.grad(energy)(x))
    return jax.lax.map(both, points, batch_size=256)


def _read(path: pathlib.Path, fitted: Fitted) -> dict[str, np.ndarray]:
    """Return the points `x`, and of molecules energies and forces where known."""
    shape, numbers = fitted.reference.center.shape, fitted.about.get("atomic_numbers")
    if is_molecules(path):
        return _read_molecules(path, symbols_of(numbers) if numbers else ())
    if path.is_dir():
        points = read_image_folder(path)[0]
    elif is_table(path):
        points = read_table(path, fitted.about.get("columns")).points
    else:
        points = read_points(path)
    points = np.asarray(points)
    if points[0].size != np.prod(shape):
        raise UserError(
            f"{path} holds points of shape {points.shape[1:]}, but this energy is of "
            f"points of shape {shape}: give data as those of the fit."
        )
    return {"x": points.reshape(-1, *shape)}


def _read_molecules(
    path: pathlib.Path, symbols: tuple[str, ...]
) -> dict[str, np.ndarray]:
    """Return positions, energies and forces, with the atoms in the order of the fit."""
    frames, places = (
        read_molecules(path),
        np.argsort(np.argsort(symbols, kind="stable")),
    )
    arrays: dict[str, list[Any]] = {"x": [], "file_energy_eV": [], "file_forces": []}
    for index, frame in enumerate(frames):
        if sorted(frame.symbols) != sorted(symbols):
            fit = formula(symbols) if symbols else "no molecules"
            raise UserError(
                f"{path}: the frame at index {index} is {formula(frame.symbols)}, but "
                f"the fit is of {fit}. Give frames of the same formula."
            )
        order = np.argsort(frame.symbols, kind="stable")[places]
        unknown = np.full((len(order), 3), np.nan)
        arrays["x"].append(frame.positions[order])
        energy = np.nan if frame.energy is None else frame.energy
        forces = unknown if frame.forces is None else frame.forces[order]
        arrays["file_energy_eV"].append(energy)
        arrays["file_forces"].append(forces)
    stacked = {name: np.array(values, float) for name, values in arrays.items()}
    return {k: v for k, v in stacked.items() if np.isfinite(v).any()}


def _compare(
    arrays: dict[str, np.ndarray], numbers: Any
) -> tuple[dict[str, float], dict[str, Any]]:
    """Return errors, and pictures, of energies and forces that the file has as well."""
    errors: dict[str, float] = {}
    panels: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    pictures: dict[str, Any] = {}
    if {"energy_eV", "file_energy_eV"} <= set(arrays):
        known = np.isfinite(arrays["file_energy_eV"])
        pair = [arrays[k][known] for k in ("file_energy_eV", "energy_eV")]
        exact, learned = (values - values.mean() for values in pair)
        panels["energy minus its mean [eV]"] = exact[:_SHOWN], learned[:_SHOWN]
        gaps = 1_000 * (learned - exact) / len(numbers)
        errors["energy: mean error [meV/atom]"] = float(np.abs(gaps).mean())
        spread = 1_000 * float(np.abs(exact).mean()) / len(numbers)
        errors["energy: error of a constant [meV/atom]"] = spread
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
