"""A learned energy as a calculator of the Atomic Simulation Environment."""

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from equistein._numbers import check_positive
from equistein._types import Point, Scalar
from equistein.molecules._elements import BOLTZMANN, symbols_of
from equistein.molecules._files import ase


def energy_calculator(
    energy: Callable[[Point], Scalar],
    about: Mapping[str, Any],
    kelvin: float | None = None,
) -> Any:
    """Return an `ase` calculator of an energy in kT, of positions in Angstrom.

    It gives energies in eV, up to a constant, and forces in eV / Angstrom.

    Args:
        energy: The energy of centered positions, `(atom, 3)`.
        about: Its `atomic_numbers`, in the order of the atoms, and its `kelvin`.
        kelvin: The temperature of the data, if `about` does not know it.

    Raises:
        MissingASE: If ASE is not installed.
        ValueError: If the elements or the temperature are unknown.
    """
    ase()
    from ase.calculators.calculator import all_changes, Calculator

    numbers = list(about.get("atomic_numbers", ()))
    kelvin = about.get("kelvin") if kelvin is None else kelvin
    if not numbers or kelvin is None:
        raise ValueError(
            "A calculator needs the elements and the temperature of the data: fit "
            "molecules with --kelvin, or give `kelvin`, such as 300."
        )
    check_positive("`calculator`", kelvin=kelvin)
    unit = BOLTZMANN * kelvin

    class LearnedEnergy(Calculator):
        implemented_properties = ["energy", "forces"]

        def calculate(self, atoms=None, properties=None, system_changes=all_changes):
            Calculator.calculate(self, atoms, properties, system_changes)
            own: Any = self.atoms
            if own.numbers.tolist() != numbers or own.pbc.any():
                raise ValueError(
                    f"This energy is of free atoms {' '.join(symbols_of(numbers))}, in "
                    f"this order, but got {own}. Reorder the atoms; set pbc to False."
                )
            centered = own.positions - own.positions.mean(axis=0)
            value, slope = _evaluate(energy, jnp.asarray(centered, float))
            forces = -unit * np.asarray(slope, np.float64)
            # Rounding leaves a net force, which would move the center of mass.
            forces -= forces.mean(axis=0)
            self.results = {"energy": unit * float(value), "forces": forces}

    return LearnedEnergy()


@eqx.filter_jit
def _evaluate(energy: Callable[[Point], Scalar], point: Point) -> tuple[Scalar, Point]:
    return jax.value_and_grad(energy)(point)
