"""The parts of a force field's potential energy. Units are nm, kJ / mol and radian."""

import abc
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein._products import matmul
from equistein._types import Point
from equistein.bridges.openmm._expressions import evaluate

# Parameters are NumPy arrays in double precision, or as the positions while in use.
Numbers: TypeAlias = Any
Addends: TypeAlias = Float[Array, " addend"]
Squares: TypeAlias = Float[Array, "atom atom"]
Vectors: TypeAlias = tuple[Array, Array, Array]  # x, y and z, which run faster apart

_TINY = 1e-30  # nm^2, which keeps slopes finite where atoms coincide


class AbstractTerm(eqx.Module):
    """A part of the potential energy, as a sum."""

    @abc.abstractmethod
    def energies(self, points: Point, squares: Squares) -> Addends:
        """Return the addends at positions with squared distances, 1 on the diagonal."""


class Bonds(AbstractTerm):
    r"""Springs, $\tfrac k2 (r - r_0)^2$."""

    atoms: Numbers
    lengths: Numbers
    stiffness: Numbers

    def energies(self, points: Point, squares: Squares) -> Addends:
        (bond,) = _steps(points, self.atoms)
        stretch = _norm(bond) - self.lengths
        return 0.5 * self.stiffness * stretch**2


class Angles(AbstractTerm):
    r"""Springs of angles, $\tfrac k2 (\theta - \theta_0)^2$."""

    atoms: Numbers
    angles: Numbers
    stiffness: Numbers

    def energies(self, points: Point, squares: Squares) -> Addends:
        left, right = _steps(points, self.atoms)
        angle = jnp.arctan2(_norm(_cross(left, right)), -_dot(left, right))
        return 0.5 * self.stiffness * (angle - self.angles) ** 2


class Torsions(AbstractTerm):
    r"""Fourier series of dihedral angles, $\sum_n a_n \cos n\phi + b_n \sin n\phi$."""

    atoms: Numbers
    cosines: Numbers  # (torsion, multiple), from the multiple 0 on
    sines: Numbers

    def energies(self, points: Point, squares: Squares) -> Addends:
        return _series(*_dihedral(points, self.atoms), self.cosines, self.sines)


class Maps(AbstractTerm):
    """Bicubic functions of two dihedral angles each, on a grid (CMAP)."""

    first: Numbers
    second: Numbers
    which: Numbers
    patches: Numbers  # (map, phi, psi, power of phi, power of psi)

    def energies(self, points: Point, squares: Squares) -> Addends:
        size = self.patches.shape[1]
        cells, powers = [], []
        for atoms in (self.first, self.second):
            x, y = _dihedral(points, atoms)
            place = jnp.arctan2(y, x) * (size / (2 * jnp.pi))
            cell = jnp.floor(place)
            cells.append(cell.astype(int) % size)
            within = place - cell
            ones = jnp.ones_like(within)
            powers.append(jnp.stack([ones, within, within**2, within**3], axis=-1))
        patches = self.patches[self.which, cells[0], cells[1]]
        products = powers[0][:, :, None] * powers[1][:, None, :]
        return jnp.sum(patches * products, axis=(1, 2))


class Pairs(AbstractTerm):
    r"""Lennard-Jones and Coulomb energies of all pairs.

    With a cut-off $r_c$, Coulomb energies have a reaction field,
    $q_i q_j (1/r + k r^2 - c)$, and Lennard-Jones energies may be switched off smoothly
    from a smaller distance on.
    """

    charges: Numbers  # products of charges, in kJ nm / mol; 0 where there is no pair
    sigma: Numbers
    epsilon: Numbers
    cutoff: float | None = None
    field: tuple[float, float] = (0.0, 0.0)
    switch: float | None = None

    def energies(self, points: Point, squares: Squares) -> Addends:
        inverse = jax.lax.rsqrt(squares + _TINY)
        lennard_jones = _lennard_jones(self.sigma, self.epsilon, inverse)
        if self.cutoff is None:
            return 0.5 * jnp.sum(lennard_jones + self.charges * inverse, axis=1)
        slope, constant = self.field
        if self.switch is not None:
            width = self.cutoff - self.switch
            x = jnp.maximum(squares * inverse - self.switch, 0.0) / width
            lennard_jones *= 1 - x**3 * (10 - 15 * x + 6 * x**2)
        coulomb = self.charges * (inverse + slope * squares - constant)
        inside = squares < self.cutoff**2
        return 0.5 * jnp.sum(jnp.where(inside, lennard_jones + coulomb, 0.0), axis=1)


class Exceptions(AbstractTerm):
    """Lennard-Jones and Coulomb energies of some pairs, which have no cut-off."""

    atoms: Numbers
    charges: Numbers
    sigma: Numbers
    epsilon: Numbers

    def energies(self, points: Point, squares: Squares) -> Addends:
        (separation,) = _steps(points, self.atoms)
        inverse = 1 / _norm(separation)
        lennard_jones = _lennard_jones(self.sigma, self.epsilon, inverse)
        return lennard_jones + self.charges * inverse


class CustomBorn(AbstractTerm):
    """A model of implicit solvent, by the expressions of a CustomGBForce.

    Values are computed for each atom, from a sum over its pairs or from other values;
    then energies of atoms and of pairs.
    """

    parameters: dict[str, Numbers]
    tables: dict[str, Numbers]
    pairs: Numbers  # 1 for each pair that is not excluded, in both directions
    values: tuple[tuple[str, str, int], ...] = eqx.field(
        static=True
    )  # name, text, kind
    terms: tuple[tuple[str, int], ...] = eqx.field(static=True)
    constants: tuple[tuple[str, float], ...] = eqx.field(static=True)
    cutoff: float | None = None

    def energies(self, points: Point, squares: Squares) -> Addends:
        atoms = dict(self.parameters)
        for name, text, kind in self.values:
            atoms[name] = self._sums(text, kind, atoms, squares)
        total = jnp.zeros(len(points), points.dtype)
        for text, kind in self.terms:
            each = self._sums(text, kind, atoms, squares)
            total = total + (0.5 * each if kind else each)
        return total

    def _sums(
        self, text: str, kind: int, atoms: Mapping[str, Array], squares: Squares
    ) -> Array:
        """Return an expression's value for each atom, summed over pairs if of these."""
        functions = {name: _look_up(table) for name, table in self.tables.items()}
        constants = dict(self.constants)
        if kind == _SINGLE:
            value = evaluate(text, {**constants, **atoms}, functions)
            return jnp.broadcast_to(value, squares.shape[:1])
        variables = {f"{name}1": each[:, None] for name, each in atoms.items()}
        variables |= {f"{name}2": each[None, :] for name, each in atoms.items()}
        variables["r"] = jnp.sqrt(squares + _TINY)
        value = evaluate(text, {**constants, **variables}, functions)
        counted = (1 - jnp.eye(len(squares))) > 0
        if kind == _PAIR:
            counted &= self.pairs > 0
        if self.cutoff is not None:
            counted &= squares < self.cutoff**2
        return jnp.sum(jnp.where(counted, value, 0.0), axis=1)


_SINGLE, _PAIR = 0, 1  # kinds of expressions, of which 2 is a pair without exclusions


def _look_up(table: Array) -> Callable[..., Array]:
    """Return a function of indices that are numbers."""
    return lambda *indices: table[tuple(jnp.round(i).astype(int) for i in indices)]


def _steps(points: Point, atoms: Array) -> list[Vectors]:
    """Return the vectors from each atom of a term to its next, for all terms."""
    # By products with matrices of 1 and -1, since gradients of indexing are slow, one
    # for each axis of space, since XLA on CPUs computes again what it has to slice.
    rows = jnp.eye(len(points), dtype=points.dtype)[atoms.T]
    x, y, z = points.T
    return [
        (matmul(each, x), matmul(each, y), matmul(each, z))
        for each in rows[1:] - rows[:-1]
    ]


def _dot(a: Vectors, b: Vectors) -> Array:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _cross(a: Vectors, b: Vectors) -> Vectors:
    (ax, ay, az), (bx, by, bz) = a, b
    return ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx


def _norm(vectors: Vectors) -> Array:
    return jnp.sqrt(_dot(vectors, vectors) + _TINY)


def _lennard_jones(sigma: Array, epsilon: Array, inverse: Array) -> Array:
    sixth = (sigma * inverse) ** 6
    return 4 * epsilon * sixth * (sixth - 1)


def _dihedral(points: Point, atoms: Array) -> tuple[Array, Array]:
    """Return x and y of dihedral angles, atan2(y, x), by the sign of IUPAC."""
    left, axis, right = _steps(points, atoms)
    normal = _cross(axis, right)
    return _dot(_cross(left, axis), normal), _norm(axis) * _dot(left, normal)


@jax.custom_jvp
def _series(x: Array, y: Array, cosines: Array, sines: Array) -> Array:
    """Return Fourier series of the angles of (x, y), a row of coefficients for each."""
    none = jnp.zeros_like(cosines)
    return _series_jvp((x, y, cosines, sines), (x, y, none, none))[0]


@_series.defjvp
def _series_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    """Return them with their slope along a direction, by the slope of the angle."""
    # As reverse mode finds it, it costs three times as much.
    (x, y, cosines, sines), (along_x, along_y, *changes) = primals, tangents
    inverse_square = 1 / (x**2 + y**2 + _TINY)
    inverse = jnp.sqrt(inverse_square)
    cosine, sine = x * inverse, y * inverse
    real, imaginary = jnp.ones_like(x), jnp.zeros_like(x)
    total, slope, change = cosines[:, 0], jnp.zeros_like(x), changes[0][:, 0]
    for n in range(1, cosines.shape[1]):
        real, imaginary = (
            real * cosine - imaginary * sine,
            real * sine + imaginary * cosine,
        )
        total = total + cosines[:, n] * real + sines[:, n] * imaginary
        slope = slope + n * (sines[:, n] * real - cosines[:, n] * imaginary)
        change = change + changes[0][:, n] * real + changes[1][:, n] * imaginary
    turn = (x * along_y - y * along_x) * inverse_square
    return total, change + slope * turn
