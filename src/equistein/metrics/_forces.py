"""Learned energies and forces of molecules, compared with those of a file."""

import jax
import numpy as np

from equistein._check_arguments import check_arguments
from equistein.data import Dataset
from equistein.energies import AbstractEnergy, values_at
from equistein.molecules import BOLTZMANN

_MAX_FRAMES = 5_000  # of each part, whose energies are compared


@check_arguments
def force_errors(energy: AbstractEnergy, dataset: Dataset) -> dict[str, float]:
    """Return mean absolute errors of held-out frames; none without a temperature.

    Of a component of the forces in eV / Angstrom, beside what zero forces would have,
    and of the energies in meV an atom, without the mean gap of training frames.

    Args:
        energy: A learned energy in kT.
        dataset: The frames, with energies in eV and forces in eV / Angstrom.
    """
    if dataset.kelvin is None:
        return {}
    unit, found = BOLTZMANN * dataset.kelvin, {}
    train, held_out = dataset.train(), dataset.held_out()
    forces = held_out.forces
    if forces is not None and (known := np.isfinite(forces).all(axis=(1, 2))).any():
        learned = values_at(jax.grad(energy.log_density), held_out.points[known])
        force_gaps = unit * np.asarray(learned) - forces[known]
        found["held_out_force_error"] = float(np.abs(force_gaps).mean())
        found["held_out_force_error_of_zero"] = float(np.abs(forces[known]).mean())
    energy_gaps = []
    for part in (train, held_out):
        if part.energies is not None and np.isfinite(part.energies).any():
            rows = np.flatnonzero(np.isfinite(part.energies))[:_MAX_FRAMES]
            learned = np.asarray(values_at(energy, part.points[rows]))
            energy_gaps.append(unit * learned - part.energies[rows])
    if len(energy_gaps) == 2:
        training, others = energy_gaps
        error = np.abs(others - training.mean()).mean() / dataset.points.shape[1]
        found["held_out_energy_error"] = 1_000 * float(error)
    return found
