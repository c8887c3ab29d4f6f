"""Densities whose energies and forces come from outside JAX."""

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from equistein._check_arguments import check_arguments
from equistein._numbers import check_positive
from equistein._types import Particles, Point, Scalar
from equistein.groups import as_cell, PeriodicCloud, PointCloud
from equistein.molecules import BOLTZMANN

_STIFFNESS = 5.0  # eV / Angstrom^2, about that of a bond between metal atoms
_GRID = 1024.0  # eV, of which a reference is a multiple, so that few depend on a start

Function = Callable[[Any], tuple[Any, Any]]
Arrays = Literal["numpy", "jax", "torch"]


class EvaluationError(ValueError):
    """A function of energies and forces failed, or returned invalid ones."""


def check_configuration(shape: tuple[int, ...], atoms: Sequence[Any] | None) -> None:
    """Raise `ValueError` unless a shape is that of one configuration of the atoms."""
    if atoms is not None and shape != (len(atoms), 3):
        raise ValueError(
            f"This density is of configurations of {len(atoms)} atoms, each of shape "
            f"({len(atoms)}, 3), but got shape {shape}. Samplers and `energies` take "
            "them stacked on axis 0: of a single one give `positions[None]`."
        )


class _Evaluated:
    """A function with how often it was evaluated; equal to itself alone."""

    def __init__(self, function: Function, rejects: bool, arrays: Arrays):
        self.function = function
        self.rejects = rejects
        self.arrays = arrays
        self.num = self.num_calls = 0
        self.num_failed = 0
        self.reference: float | None = None

    def __call__(self, ndim: int, points: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return energies and forces of points with any number of leading axes."""
        points = np.asarray(points)
        axes = points.shape[: points.ndim - ndim]
        flat = points.reshape(-1, *points.shape[len(axes) :])
        energies, forces = self._of_batch(flat.astype(np.float64))
        return energies.reshape(axes), forces.reshape(points.shape)

    def relative(self, ndim: int, points: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the same in the precision of the points, less a reference energy.

        It is the constant part of the energies, of all electrons say, beside which
        single precision could not hold their differences.
        """
        energies, forces = self(ndim, points)
        known = np.isfinite(energies)
        if self.reference is None and known.any():
            least = float(energies[known].min())
            # The energy of atoms that clash is no constant: its forces are large too.
            is_constant = 100 * np.abs(forces).max() < abs(least)
            self.reference = _GRID * round(least / _GRID) if is_constant else 0.0
        relative = np.asarray(energies - (self.reference or 0.0), points.dtype)
        return relative, np.asarray(forces, points.dtype)

    def _call(self, points: np.ndarray) -> list[np.ndarray]:
        """Return energies and forces, of points in the arrays that the function takes.

        Those on the CPU share their memory, by DLPack.
        """
        self.num_calls += 1
        given: Any = jnp.asarray(points) if self.arrays == "jax" else points
        if self.arrays == "torch":
            given = importlib.import_module("torch").from_dlpack(points)
        pair = self.function(given)
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise TypeError(f"must return a pair of arrays, got {type(pair).__name__}")
        if self.arrays != "torch":
            return [np.array(each, np.float64) for each in pair]
        found = (each.detach().cpu().double() for each in pair)
        return [np.array(np.from_dlpack(each)) for each in found]

    def _of_batch(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        try:
            energies, forces = self._call(points)
        except Exception as error:
            if not self.rejects:
                reason = " ".join(f"{type(error).__name__}: {error}".split())
                raise EvaluationError(f"the function raised {reason}") from error
            if len(points) > 1:
                each = [self._of_batch(point[None]) for point in points]
                energies, forces = zip(*each, strict=True)
                return np.concatenate(energies), np.concatenate(forces)
            energies, forces = np.full(1, np.nan), np.zeros_like(points)
        if energies.shape != points.shape[:1] or forces.shape != points.shape:
            raise EvaluationError(
                f"the function must return energies of shape {points.shape[:1]} and "
                f"forces of shape {points.shape}, one for each of {len(points)} "
                f"configurations, but returned {energies.shape} and {forces.shape}"
            )
        self.num += len(points)
        finite = np.isfinite(forces).reshape(len(points), -1).all(axis=1)
        bad = ~(finite & np.isfinite(energies))
        if bad.any() and not self.rejects:
            index = int(bad.argmax())
            raise EvaluationError(
                f"the energy or a force is not finite at {bad.sum()} of {len(points)} "
                f"configurations, first at {points[index].tolist()}: energy "
                f"{energies[index]}"
            )
        self.num_failed += int(bad.sum())
        energies[bad], forces[bad] = np.inf, 0.0
        return energies, forces


class EnergyForces(eqx.Module):
    r"""The log density $-E(x) / k_B T$ of energies from outside JAX.

    A function of one point; under `jax.vmap` all particles are one call of the external
    function. It has a gradient, from the forces, but no second derivative.
    """

    temperature: float
    species: tuple[int, ...] | None
    container: float | None
    cell: tuple[tuple[float, ...], ...] | None
    _evaluated: _Evaluated = eqx.field(static=True)

    def __call__(self, point: Point) -> Scalar:
        """Return the log density of a point, up to a constant."""
        check_configuration(point.shape, self.species)
        energy = _energy(self._evaluated, point) + self._wall(point)
        return -energy / (BOLTZMANN * self.temperature)

    def energies(self, points: Particles | np.ndarray) -> np.ndarray:
        """Return the energy of each point in eV, without the container's, in double."""
        check_configuration(np.shape(points)[1:], self.species)
        return self._evaluated(np.ndim(points) - 1, points)[0]

    def check_forces(self, points: Particles | np.ndarray, step: float = 1e-3) -> None:
        """Raise unless the forces are minus the gradient of the energies.

        By finite differences along forces and a random direction; `step` in Angstrom.
        """
        points = np.asarray(points, np.float64)
        check_configuration(points.shape[1:], self.species)
        forces = self._evaluated(points.ndim - 1, points)[1]
        axes = tuple(range(1, points.ndim))
        sizes = np.sqrt((forces**2).sum(axes, keepdims=True))
        along = forces / np.maximum(sizes, np.finfo(float).tiny)
        other = np.random.default_rng(0).normal(size=points.shape)
        along = along + other / np.sqrt((other**2).sum(axes, keepdims=True))
        ahead, behind = (self.energies(points + s * along) for s in (step, -step))
        slopes, expected = (ahead - behind) / (2 * step), -(forces * along).sum(axes)
        wrong = np.abs(slopes - expected) > 0.05 * sizes.ravel() + 1e-3
        if wrong.any():
            index = int(wrong.argmax())
            raise EvaluationError(
                "Forces must be minus the gradient of the energies, but at "
                f"{wrong.sum()} of {len(points)} points they are not: at index {index} "
                f"the energy changes by {slopes[index]:.6g} eV / Angstrom along a "
                f"direction, instead of {expected[index]:.6g}."
            )

    @property
    def group(self) -> PointCloud | PeriodicCloud:
        """The symmetry of the atoms, where `species` are known."""
        if self.species is None:
            raise ValueError(
                "The `group` of this density needs the `species` of from_energy_forces."
            )
        if self.cell is not None:
            return PeriodicCloud(self.species, self.cell)
        return PointCloud(self.species, 3)

    @property
    def num_evaluations(self) -> int:
        """The number of configurations evaluated so far."""
        return self._evaluated.num

    @property
    def num_calls(self) -> int:
        """The number of calls of the function so far, each of a batch."""
        return self._evaluated.num_calls

    @property
    def num_failed(self) -> int:
        """The number of those that failed, where failures are rejected."""
        return self._evaluated.num_failed

    def _wall(self, point: Point) -> Scalar | float:
        if self.container is None:
            return 0.0
        centered = point - jnp.mean(point, axis=0, keepdims=True)
        tiny = float(jnp.finfo(point.dtype).tiny)  # the root has a slope at 0 too
        radii = jnp.sqrt(jnp.sum(centered**2, axis=1) + tiny)
        beyond = jnp.maximum(radii - self.container, 0.0)
        return _STIFFNESS / 2 * jnp.sum(beyond**2)


@check_arguments
def from_energy_forces(
    function: Function,
    *,
    temperature: float,
    species: Sequence[int] | None = None,
    cell: Any = None,
    container: float | None = None,
    on_failure: Literal["raise", "reject"] = "raise",
    arrays: Arrays = "numpy",
) -> EnergyForces:
    r"""Return the Boltzmann density of energies and forces from outside JAX.

    $$\log p(x) = -\frac{1}{k_B T} \Bigl( E(x) + \frac{k}{2} \sum_i
      \max(|x_i - \bar x| - R, 0)^2 \Bigr) + \text{const}$$

    with $k_B$ = 8.617333262e-5 eV / K. A large constant of the energies, of thousands
    of eV, is left out in double precision. The function is called from compiled code,
    once a step for all particles: one call gives the density and its gradient.

    Args:
        function: `function(points) -> (energies, forces)` of arrays in double
            precision: points (n, *shape) in Angstrom, energies (n,) in eV, forces
            (n, *shape) in eV / Angstrom, minus the gradient of the energies.
        temperature: $T$ in K.
        species: A label for each atom, such as atomic numbers, for points of shape
            (atom, 3), and for `density.group`.
        cell: Of atoms in a periodic cell, its edges as rows, for `density.group`.
        container: The radius $R$ in Angstrom of a soft container around the center of
            mass, without which clusters evaporate; $k$ = 5 eV / Angstrom^2.
        on_failure: If the function raises, or an energy or a force is not finite:
            `raise` ends the run, with the samples so far in the error; `reject` gives
            density 0 there, and counts it in `density.num_failed`.
        arrays: Which the function takes and returns: NumPy's; JAX's; or tensors of
            Torch, which share the memory of the points on the CPU. A model on a GPU
            takes `points.to("cuda")`; what it returns is brought back.
    """
    if cell is not None and container is not None:
        raise ValueError(
            "`container` is for clusters: leave it out for atoms in a periodic `cell`."
        )
    radius = 1.0 if container is None else container
    check_positive("`from_energy_forces`", temperature=temperature, container=radius)
    return EnergyForces(
        float(temperature),
        None if species is None else tuple(map(int, species)),
        None if container is None else float(container),
        None if cell is None else as_cell(cell),
        _Evaluated(function, on_failure == "reject", arrays),
    )


def _call(evaluated: _Evaluated, point: Point) -> tuple[Scalar, Point]:
    """Return energy and forces; a batch of points is one call."""
    like = (
        jax.ShapeDtypeStruct((), point.dtype),
        jax.ShapeDtypeStruct(point.shape, point.dtype),
    )
    call = functools.partial(evaluated.relative, point.ndim)
    return jax.pure_callback(call, like, point, vmap_method="expand_dims")


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _energy(evaluated: _Evaluated, point: Point) -> Scalar:
    return _call(evaluated, point)[0]


@_energy.defjvp
def _energy_jvp(evaluated: _Evaluated, primals: Any, tangents: Any) -> Any:
    (point,), (direction,) = primals, tangents
    energy, forces = _call(evaluated, point)
    return energy, -jnp.sum(forces * direction)
