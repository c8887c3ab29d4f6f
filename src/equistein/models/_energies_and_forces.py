"""Energies and forces that the data has, learned in units of kT and judged."""

import dataclasses
import pathlib

import jax
import numpy as np

from equistein._gate import gate
from equistein.data import DataError
from equistein.diffusion import NoiseEnergy
from equistein.energies import AbstractEnergy
from equistein.models._dataset import Dataset
from equistein.models._model import Model
from equistein.models._problem import Problem
from equistein.models._settings import (
    AbstractParticleSettings,
    AbstractSettings,
    ContrastiveSettings,
)
from equistein.models._values import values_at
from equistein.molecules import BOLTZMANN
from equistein.training import AbstractObjective, Blurred, Fitted, ForceMatching

_COMPARED = 5_000  # training frames that tell the constant of the energies


def with_energies(path: pathlib.Path, problem: Problem, dataset: Dataset) -> Dataset:
    """Return data whose energies in kT, less their mean, are its labels if learned.

    A density does not tell the constant of its energy. A graph network's is that of
    blurred molecules, whose energies are unknown: it learns from forces alone.

    Raises:
        DataError: If there is nothing to learn from at a temperature.
    """
    energies, forces = dataset.energies, dataset.forces
    num_train = len(dataset.points) - dataset.num_held_out
    if energies is None and forces is None:
        raise DataError(
            "--kelvin is for molecules with energies or forces, as an extended .xyz "
            f"has them, but {path} has neither: leave it out."
        )
    if dataset.formulas:
        raise DataError(
            f"{path} holds molecules of {len(dataset.formulas)} formulas, and energies "
            "and forces are learned of one: give molecules of one formula, or leave "
            "--kelvin out."
        )
    if forces is not None and not np.nansum(forces[:num_train] ** 2) > 0:
        raise DataError(
            f"The forces in {path} that training sees are all zero or unknown: give "
            "more frames with forces, or leave --kelvin out."
        )
    if problem.network != "features":
        if forces is None:
            raise DataError(
                f"{path} has energies alone, and a graph network learns from forces: "
                "take --network features."
            )
        return dataset
    if energies is None or not problem.labels:
        return dataset
    known = energies[:num_train][np.isfinite(energies[:num_train])]
    if not len(known) or np.ptp(known) == 0:
        alike = f"all alike, {known[0]:g} eV" if len(known) else "all unknown"
        raise DataError(
            f"The energies in {path} that training sees are {alike}: leave them out "
            "with --no-labels."
        )
    labels = (energies - known.mean()) / (BOLTZMANN * (dataset.kelvin or 1.0))
    return dataclasses.replace(dataset, labels=labels.astype(np.float32))


def with_forces(
    model: Model, train: Dataset, settings: AbstractSettings | None
) -> Model:
    """Return a model that learns from the forces as well, if there are some in kT.

    Where the model is of blurred points, so are those of the forces: the score of the
    blurred density is the mean of the forces.
    """
    settings = settings or ContrastiveSettings()
    if train.forces is None or train.kelvin is None:
        return model
    if not isinstance(settings, AbstractParticleSettings) or not settings.force_weight:
        return model
    scores = train.forces / (BOLTZMANN * train.kelvin)
    part: AbstractObjective = ForceMatching(scores)
    noise = 0.0
    if isinstance(model.energy, NoiseEnergy):
        noise = float(model.energy.sigma_min)
    elif isinstance(settings, ContrastiveSettings):
        noise = settings.data_noise
    if noise:
        part = Blurred(part, noise)
    weight = settings.force_weight / float(np.nanmean(scores**2))
    return dataclasses.replace(model, objective=model.objective + weight * part)


@gate
def force_errors(fitted: Fitted, dataset: Dataset) -> dict[str, float]:
    """Return how far energies and forces of held-out frames are from the file's.

    The mean absolute error of a component of the forces in eV / Angstrom, beside what
    zero forces would have, and that of the energies in meV an atom, once the mean gap
    in training frames is taken off, which a density does not tell. Empty without a
    temperature.
    """
    energy, found = fitted.energy, {}
    if dataset.kelvin is None or not isinstance(energy, AbstractEnergy):
        return found
    unit = BOLTZMANN * dataset.kelvin
    train, held_out = dataset.train(), dataset.held_out()
    if held_out.forces is not None:
        known = np.isfinite(held_out.forces).all(axis=(1, 2))
        if known.any():
            forces = held_out.forces[known]
            learned = values_at(jax.grad(energy.log_density), held_out.points[known])
            gaps = unit * np.asarray(learned) - forces
            found["held_out_force_error"] = float(np.abs(gaps).mean())
            found["held_out_force_error_of_zero"] = float(np.abs(forces).mean())
    if held_out.energies is not None:
        before, after = (_gaps(energy, part, unit) for part in (train, held_out))
        if len(before) and len(after):
            error = np.abs(after - before.mean()).mean() / dataset.points.shape[1]
            found["held_out_energy_error"] = 1_000 * float(error)
    return found


def _gaps(energy: AbstractEnergy, part: Dataset, unit: float) -> np.ndarray:
    """Return how far energies are from those known, in eV."""
    assert part.energies is not None
    rows = np.flatnonzero(np.isfinite(part.energies))[:_COMPARED]
    if not len(rows):
        return np.zeros(0)
    return unit * np.asarray(values_at(energy, part.points[rows])) - part.energies[rows]
