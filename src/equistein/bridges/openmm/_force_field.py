"""The Boltzmann density of a force field of OpenMM, in JAX."""

import importlib
import warnings
from typing import Any
from xml.etree import ElementTree

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein._check_arguments import check_arguments
from equistein._extras import require
from equistein._numbers import check_positive
from equistein._types import Particles, Point, Scalar
from equistein.bridges._energy_forces import check_configuration
from equistein.bridges.openmm._terms import AbstractTerm
from equistein.bridges.openmm._translation import read_terms, REMEDY
from equistein.groups import PointCloud

_GAS = 8.31446261815324e-3  # kJ / mol / K
_COLDEST = 5.0  # K; kT at 300 K is .026 eV, .6 kcal/mol, 2.5 kJ/mol
_CLOSEST = 0.03  # nm, less than any two atoms are apart
_HIGHEST = 1e6  # kT, and of small molecules 1e4 an atom


class ForceField(eqx.Module):
    r"""The log density $-U(x) / k_B T$ of a force field, a pure function of JAX.

    A function of one point, the positions in nm, which can be vmapped, differentiated
    any number of times, and compiled. Its numbers are in the precision of the point.
    """

    kelvin: float
    num_atoms: int
    _terms: tuple[AbstractTerm, ...]
    _reference: tuple[Any, ...]  # the addends of each term that are subtracted

    def __call__(self, point: Point) -> Scalar:
        """Return the log density of a point, up to a constant."""
        point = jnp.asarray(_in_nm(point))
        check_configuration(point.shape, range(self.num_atoms))
        own = _in_precision(self, point.dtype)
        parts = zip(own._addends(point), own._reference, strict=True)
        total = sum(jnp.sum(addends - subtracted) for addends, subtracted in parts)
        return -jnp.asarray(total, point.dtype) / (_GAS * self.kelvin)

    def energies(self, points: Particles | np.ndarray) -> np.ndarray:
        """Return the potential energy of each point in kJ / mol, in double precision.

        The whole energy, from which no reference is subtracted.
        """
        points = np.asarray(_in_nm(points), np.float64)
        check_configuration(points.shape[1:], range(self.num_atoms))
        with jax.enable_x64(True):
            return np.asarray(_energies(self, points))

    def check_start(self, points: Particles | np.ndarray) -> None:
        """Raise unless points may be configurations in nm; `es.run` does at the start.

        Raises:
            ValueError: If two atoms are nearer than .03 nm, or an energy is above
                1e6 kT, or 1e4 kT an atom, as in other units.
        """
        points = np.asarray(_in_nm(points), np.float64)
        for index, point in enumerate(points):
            apart = np.linalg.norm(point[:, None] - point[None, :], axis=-1)
            np.fill_diagonal(apart, np.inf)
            first, second = np.unravel_index(apart.argmin(), apart.shape)
            nearest = apart[first, second]
            if nearest < _CLOSEST:
                raise ValueError(
                    f"Positions must be in nm, but at index {index} atoms {first} and "
                    f"{second} are {nearest:.3g} nm apart, less than {_CLOSEST}."
                )
        high = self.energies(points) / (_GAS * self.kelvin)
        limit = min(_HIGHEST, 1e4 * self.num_atoms)
        if not np.all(high <= limit):
            index = int(np.argmax(~(high <= limit)))
            raise ValueError(
                f"Positions must be in nm and in the order of the system's atoms, but "
                f"at index {index} the energy is {high[index]:.3g} kT, above "
                f"{limit:.0e}. From Angstrom, multiply by 0.1; minimize the energy "
                "of atoms that overlap, with OpenMM."
            )

    @property
    def group(self) -> PointCloud:
        """The motions of space; atoms are not exchanged, nor mirrored."""
        return PointCloud(range(self.num_atoms), 3, reflections=False)

    def _addends(self, point: Point) -> list[Array]:
        x, y, z = (each[:, None] - each[None, :] for each in point.T)
        squares = x**2 + y**2 + z**2 + jnp.eye(len(point), dtype=point.dtype)
        return [term.energies(point, squares) for term in self._terms]


def _in_nm(points: Any) -> Any:
    """Return positions as they are, but those with a unit of OpenMM's in nm."""
    if not hasattr(points, "value_in_unit"):
        return points
    return points.value_in_unit(importlib.import_module("openmm.unit").nanometer)


def _in_precision(tree: Any, dtype: Any) -> Any:
    """Return a tree whose numbers have a precision."""

    def cast(leaf):
        if not eqx.is_array(leaf):
            return leaf
        return jnp.asarray(leaf, dtype if leaf.dtype.kind == "f" else None)

    return jax.tree.map(cast, tree)


@eqx.filter_jit
def _energies(
    field: ForceField, points: Particles | np.ndarray
) -> Float[Array, " particle"]:
    one = lambda point: sum(jnp.sum(each) for each in field._addends(point))
    return jax.lax.map(one, jnp.asarray(points), batch_size=16)


@check_arguments
def from_openmm(system: Any, kelvin: float, *, reference: Any = None) -> ForceField:
    r"""Return the Boltzmann density of an OpenMM system as a function of JAX.

    $$\log p(x) = -\frac{U(x) - U(x_0)}{k_B T}$$

    Points are positions (atom, 3) in nm. Translated are harmonic bonds and angles,
    periodic torsions, CMAP, Lennard-Jones and Coulomb energies without cut-off or with
    a reaction field, exceptions, and implicit solvent: GBSAOBCForce, and CustomGBForce
    by its expressions, as Amber's HCT, OBC and GBn models are. The density has no bound
    for the center of mass: project with `density.group.project`. Pairs are computed
    all, so that it suits up to about a thousand atoms.

    Args:
        system: An `openmm.System` without constraints, virtual sites and periodic
            cell: `forcefield.createSystem(topology, nonbondedMethod=NoCutoff,
            constraints=None, rigidWater=False)`.
        kelvin: $T$ in K.
        reference: Positions $x_0$ in nm, or with a unit of OpenMM. Their energies, in
            double precision, are subtracted atom by atom and bond by bond. In single
            precision the rest is then summed with less rounding.
    """
    check_positive("`from_openmm`", kelvin=kelvin)
    if kelvin < _COLDEST:
        text = f"`kelvin` is {float(kelvin):.3g}: give the temperature in K, not kT"
        warnings.warn(f"{text}, which is 2.49 kJ/mol at 300 K.", stacklevel=3)
    masses, terms = _translate(system)
    nothing = tuple(np.zeros(1) for _ in terms)
    field = ForceField(float(kelvin), len(masses), tuple(terms), nothing)
    if reference is None:
        return field
    point = np.asarray(_in_nm(reference), np.float64)
    if point.shape != (len(masses), 3):
        raise ValueError(
            f"`reference` must be positions of shape ({len(masses)}, 3) in nm, but got "
            f"shape {point.shape}."
        )
    field.check_start(point[None])
    with jax.enable_x64(True):
        addends = eqx.filter_jit(field._addends)(jnp.asarray(point))
        subtracted = tuple(map(np.asarray, addends))
    return ForceField(field.kelvin, field.num_atoms, field._terms, subtracted)


def _translate(system: Any) -> tuple[list[float], list[AbstractTerm]]:
    """Return the masses of a system, and its forces as terms."""
    openmm = require("openmm", "OpenMM", "openmm")
    if not isinstance(system, openmm.System):
        raise ValueError(
            "`system` must be an openmm.System, such as "
            f"`forcefield.createSystem(topology)` returns, but got {system!r}."
        )
    # All numbers in OpenMM's units: nm, ps, kJ / mol, radian.
    tree = ElementTree.fromstring(openmm.XmlSerializer.serialize(system))
    masses = [float(each.get("mass", 0)) for each in tree.find("Particles") or ()]
    _check_particles(system, masses)
    terms: list[AbstractTerm] = []
    like = jax.ShapeDtypeStruct((len(masses), 3), float)
    for force in tree.find("Forces") or ():
        kind, name = force.get("type"), force.get("name")
        try:
            own = read_terms(force, len(masses))
            # What is wrong with an expression shows when it is traced.
            part = ForceField(1.0, len(masses), tuple(own), (np.zeros(1),) * len(own))
            eqx.filter_eval_shape(part, like)
        except (ValueError, TypeError) as error:
            label = kind if name in (kind, None, "") else f"{kind} {name!r}"
            raise ValueError(f"`system` has a {label}: {error}") from None
        terms += own
    return masses, terms


def _check_particles(system: Any, masses: list[float]) -> None:
    """Raise `ValueError` unless all atoms move freely."""
    num = system.getNumConstraints()
    if num:
        raise ValueError(
            f"`system` has {num} constraints, which densities in JAX have not: create "
            "it with `constraints=None, rigidWater=False`."
        )
    for index, mass in enumerate(masses):
        if system.isVirtualSite(index):
            raise ValueError(
                f"`system` has a virtual site, particle {index}, which is not "
                f"translated: take a model without, such as TIP3P water. {REMEDY}"
            )
        if not mass > 0:
            raise ValueError(
                f"`system` has an atom without a mass, particle {index}, which OpenMM "
                "holds fixed: give it a mass."
            )
