"""The Atomic Simulation Environment: calculators in, atoms out."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from equistein._check_arguments import check_arguments
from equistein._types import Particles
from equistein.bridges._energy_forces import EnergyForces, from_energy_forces
from equistein.molecules import ase, atomic_numbers_of


@check_arguments
def from_ase(
    atoms: Any,
    *,
    temperature: float,
    container: float | None = None,
    on_failure: Literal["raise", "reject"] = "raise",
) -> EnergyForces:
    r"""Return the Boltzmann density of a molecule or cluster with an ASE calculator.

    Points are positions (atom, 3) in Angstrom, and the symmetry, `density.group`, that
    of the elements. The calculator is called for one configuration after the other.

    Args:
        atoms: An `ase.Atoms` with a calculator and no periodic cell; it is copied.
        temperature: In K.
        container: As in `from_energy_forces`.
        on_failure: As in `from_energy_forces`.

    Raises:
        ValueError: If there is no calculator, or the atoms are periodic.
    """
    if getattr(atoms, "calc", None) is None:
        raise ValueError(
            "`atoms` must be an ase.Atoms with a calculator, such as `atoms.calc = "
            f"EMT()`, but got {atoms!r}."
        )
    if np.any(atoms.pbc):
        raise ValueError(
            "`atoms` must have no periodic cell: set `atoms.pbc = False` if they are "
            "free."
        )
    own = atoms.copy()
    own.calc = atoms.calc

    def energies_and_forces(points):
        energies, forces = np.zeros(len(points)), np.zeros_like(points)
        for index, positions in enumerate(points):
            own.positions = positions
            forces[index] = own.get_forces()
            energies[index] = own.get_potential_energy()
        return energies, forces

    return from_energy_forces(
        energies_and_forces, temperature=temperature, species=own.numbers.tolist(),
        container=container, on_failure=on_failure,
    )  # fmt: skip


@check_arguments
def to_ase(
    species: Sequence[str] | Sequence[int], positions: Particles | np.ndarray
) -> list[Any]:
    """Return samples as a list of `ase.Atoms`, which `ase.io.write` takes.

    Args:
        species: The element of each atom, as a symbol or an atomic number.
        positions: Samples of shape (sample, atom, 3), in Angstrom.

    Raises:
        MissingASE: If ASE is not installed.
        ValueError: If there is no such element, or the shape does not fit.
    """
    rows = np.asarray(positions, np.float64)
    if rows.shape[1:] != (len(species), 3):
        raise ValueError(
            f"`positions` must have shape (sample, {len(species)}, 3), but got "
            f"{rows.shape}."
        )
    atoms, symbols = ase().Atoms, [each for each in species if isinstance(each, str)]
    numbers = atomic_numbers_of(symbols) if symbols else tuple(map(int, species))
    return [atoms(numbers=numbers, positions=row) for row in rows]
