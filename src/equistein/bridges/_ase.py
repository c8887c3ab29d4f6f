"""The Atomic Simulation Environment: calculators in, atoms out."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from equistein._check_arguments import check_arguments
from equistein._extras import require
from equistein._numbers import check_positive
from equistein._types import Particles, Point, Scalar
from equistein.bridges._energy_forces import EnergyForces, from_energy_forces
from equistein.molecules import atomic_numbers_of, BOLTZMANN, symbols_of


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
    In a periodic cell particles are not wrapped, but `density.group.wrap` does it.

    Args:
        atoms: An `ase.Atoms` with a calculator, free or in a cell that is periodic
            along all of its edges; it is copied.
        temperature: In K.
        container: As in `from_energy_forces`.
        on_failure: As in `from_energy_forces`.
    """
    if getattr(atoms, "calc", None) is None:
        raise ValueError(
            "`atoms` must be an ase.Atoms with a calculator, such as `atoms.calc = "
            f"EMT()`, but got {atoms!r}."
        )
    if np.any(atoms.pbc) and not (np.all(atoms.pbc) and atoms.cell.rank == 3):
        raise ValueError(f"`atoms` must be periodic along all edges or none: {atoms}.")
    rules = [each for each in atoms.constraints if np.size(getattr(each, "index", 1))]
    if kinds := {type(each).__name__ for each in rules} - {"FixCom"}:
        names = ", ".join(sorted(kinds))
        raise ValueError(f"`atoms` must be free of {names}: `del atoms.constraints`.")
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
        cell=np.array(atoms.cell[:]) if np.all(atoms.pbc) else None,
        container=container, on_failure=on_failure,
    )  # fmt: skip


@check_arguments
def to_ase(
    species: Sequence[str] | Sequence[int],
    positions: Particles | np.ndarray,
    cell: Any = None,
) -> list[Any]:
    """Return samples as a list of `ase.Atoms`, which `ase.io.write` takes.

    Args:
        species: The element of each atom, as a symbol or an atomic number.
        positions: Samples of shape (sample, atom, 3), in Angstrom.
        cell: The edges of a periodic cell as rows, if there is one.
    """
    rows = np.asarray(positions, np.float64)
    if rows.shape[1:] != (len(species), 3):
        raise ValueError(
            f"`positions` must have shape (sample, {len(species)}, 3), but got "
            f"{rows.shape}."
        )
    atoms = require("ase", "ASE", "ase").Atoms
    symbols = [each for each in species if isinstance(each, str)]
    numbers = atomic_numbers_of(symbols) if symbols else tuple(map(int, species))
    known = {} if cell is None else {"cell": np.array(cell), "pbc": True}
    return [atoms(numbers=numbers, positions=row, **known) for row in rows]


@check_arguments
def energy_calculator(
    energy: Callable[[Point], Scalar],
    about: Mapping[str, Any],
    kelvin: float | None = None,
) -> Any:
    """Return an `ase` calculator of an energy in kT, of positions in Angstrom.

    It gives energies in eV, up to a constant, and forces in eV / Angstrom.

    Args:
        energy: The energy of centered positions, `(atom, 3)`.
        about: Its `atomic_numbers`, in the order of the atoms, its `kelvin`, and the
            `cell` if it is periodic.
        kelvin: The temperature of the data, if `about` does not know it.
    """
    require("ase", "ASE", "ase")
    from ase.calculators.calculator import all_changes, Calculator

    numbers, cell = list(about.get("atomic_numbers", ())), about.get("cell")
    known = about.get("kelvin")
    if kelvin and known and kelvin != known:
        raise ValueError(
            f"`kelvin` is that of the data, {known:g}, whatever the temperature of a "
            f"simulation, but got {kelvin:g}: leave it out."
        )
    kelvin = known or kelvin
    if not numbers or kelvin is None:
        raise ValueError(
            "A calculator needs the elements and the temperature of the data: fit "
            "molecules with --kelvin, or give `kelvin`, such as 300."
        )
    check_positive("`calculator`", kelvin=kelvin)
    unit = BOLTZMANN * kelvin
    value_and_grad = eqx.filter_jit(eqx.filter_value_and_grad(energy))

    class LearnedEnergy(Calculator):
        implemented_properties = ["energy", "forces"]

        def calculate(self, atoms=None, properties=None, system_changes=all_changes):
            Calculator.calculate(self, atoms, properties, system_changes)
            own: Any = self.atoms
            where = f"the cell {cell}, with pbc True" if cell else "space, pbc False"
            is_here = own.pbc.all() if cell else not own.pbc.any()
            is_here &= not cell or np.allclose(own.cell[:], cell, rtol=1e-4)
            if own.numbers.tolist() != numbers or not is_here:
                raise ValueError(
                    f"This energy is of atoms {' '.join(symbols_of(numbers))}, in this "
                    f"order, in {where}, but got {own}. Reorder the atoms, or set both."
                )
            centered = own.positions - own.positions.mean(axis=0)
            value, slope = value_and_grad(jnp.asarray(centered, float))
            forces = -unit * np.asarray(slope, np.float64)
            # Rounding leaves a net force, which would move the center of mass.
            forces -= forces.mean(axis=0)
            self.results = {"energy": unit * float(value), "forces": forces}

    return LearnedEnergy()
