"""Chains that an algorithm of BlackJAX moves."""

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from equistein._gate import keyed
from equistein._products import matmul
from equistein._types import Key, LogDensity, Particles, Point, Scalar
from equistein.samplers._blackjax_algorithms import Algorithm, Walker
from equistein.samplers._blackjax_warm_up import warm_up
from equistein.samplers._geometric_path import Flat, GeometricPath, PathWalker
from equistein.samplers._markov_chains import AbstractMarkovChains, ChainParameters
from equistein.samplers._scores import check_projection

_NUM_CHAINS = 8  # of the warm-up
_TOLERANCE = 1e-4  # of a projection in single precision


class SubspaceCoordinates(eqx.Module):
    r"""Coordinates z of points $x = B z$, B an orthonormal basis of a subspace.

    Lengths, volumes and normal distributions are those of the subspace itself. Without
    a basis the subspace is the whole space, and z is x in one row.
    """

    basis: Float[Array, "size coordinate"] | None
    shape: tuple[int, ...] = eqx.field(static=True)

    @property
    def dim(self) -> int:
        """The dimension of the subspace."""
        return math.prod(self.shape) if self.basis is None else self.basis.shape[1]

    def of(self, point: Point) -> Float[Array, " coordinate"]:
        r"""Return $B^\top x$: the coordinates of a point, or of a score."""
        flat = point.ravel()
        if self.basis is None:
            return flat
        return matmul(flat, self.basis.astype(point.dtype))

    def point(self, coordinates: Float[Array, " coordinate"]) -> Point:
        """Return the point $B z$."""
        if self.basis is not None:
            coordinates = matmul(self.basis.astype(coordinates.dtype), coordinates)
        return coordinates.reshape(self.shape)


def coordinates_on(
    name: str, project: Callable[[Point], Point], shape: tuple[int, ...]
) -> SubspaceCoordinates:
    """Return coordinates on the subspace that points of this shape are projected on.

    The basis is found by what the projection does to unit vectors, before anything is
    compiled: it may hold no array that is traced. Raises `ValueError` if the projection
    is not linear and orthogonal, or leaves only the origin.
    """
    size = math.prod(shape)
    with jax.ensure_compile_time_eval():
        zero = jnp.zeros(shape)
        matrix = np.asarray(jax.jacfwd(project)(zero), float).reshape(size, size)
        probe = np.linspace(-1.0, 2.0, size).reshape(shape)
        image = np.asarray(project(jnp.asarray(probe, zero.dtype)), float).ravel()
    gaps = [matrix - matrix.T, matrix @ matrix - matrix, image - matrix @ probe.ravel()]
    if not all(np.max(np.abs(gap), initial=0.0) < _TOLERANCE for gap in gaps):
        raise ValueError(
            f"{name} needs a `project` that is a linear orthogonal projection, as the "
            "one that moves the center of mass to the origin, to have coordinates on "
            f"its image, but got {project!r}."
        )
    if np.max(np.abs(matrix - np.eye(size)), initial=0.0) < _TOLERANCE:
        return SubspaceCoordinates(None, shape)
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    basis = vectors[:, values > 0.5]
    if not basis.shape[1]:
        raise ValueError(f"{name} got a `project` that leaves nothing but the origin.")
    return SubspaceCoordinates(jnp.asarray(basis, zero.dtype), shape)


class BlackJAXChains(AbstractMarkovChains):
    """Independent chains that BlackJAX moves; `from_blackjax` makes them."""

    algorithm: Algorithm
    num_warmup: int
    step_size: float | Scalar
    inverse_mass_matrix: Float[Array, "..."] | None
    acceptance: float
    project: Callable[[Point], Point]
    num_adapt: int | Int[Array, ""] = 0  # the warm-up does it

    def scaled(self, factor: float | Scalar) -> "BlackJAXChains":
        """Return these chains with their first step size multiplied."""
        return eqx.tree_at(lambda s: s.step_size, self, self.step_size * factor)

    def parameters(self, particles: Particles) -> ChainParameters:
        dtype, mass = particles.dtype, self.inverse_mass_matrix
        if mass is None:
            mass = jnp.ones(self._coordinates(particles.shape[1:]).dim, dtype)
        log_step_size = jnp.log(jnp.full((), self.step_size, dtype))
        return ChainParameters(log_step_size, mass.astype(dtype))

    @keyed
    def tune(
        self,
        key: Key,
        path: GeometricPath,
        particles: Particles,
        beta: Scalar,
        parameters: ChainParameters,
    ) -> tuple[ChainParameters, Int[Array, ""]]:
        """Warm up chains from some of the particles, which stay where they are."""
        if not self.num_warmup:
            return parameters, jnp.zeros((), int)
        num = len(particles)
        chosen = np.linspace(0, num - 1, min(num, _NUM_CHAINS)).astype(int)
        coordinates = self._coordinates(particles.shape[1:])
        density = _Within(path.at(beta), coordinates)
        points = jax.vmap(coordinates.of)(particles[chosen])
        step_size, mass, spent = warm_up(
            key, self.algorithm, density, points, jnp.exp(parameters.log_step_size),
            parameters.inverse_mass_matrix, self.num_warmup, self.acceptance,
        )  # fmt: skip
        return ChainParameters(jnp.log(step_size), mass), -(-spent // num)

    @keyed
    def move(
        self,
        key: Key,
        path: GeometricPath,
        walker: PathWalker,
        beta: Scalar,
        parameters: ChainParameters,
    ) -> tuple[PathWalker, Scalar, Int[Array, ""], Bool[Array, ""]]:
        coordinates = self._coordinates(walker.point.shape)
        value, score = path.tempered(walker, beta)
        start = Walker(coordinates.of(walker.point), value, coordinates.of(score))
        end, chance, spent, defined = self.algorithm.transition(
            key, _Within(path.at(beta), coordinates), start,
            jnp.exp(parameters.log_step_size), parameters.inverse_mass_matrix,
        )  # fmt: skip
        point = coordinates.point(end.point)
        if isinstance(path.base, Flat):  # the end's values are those of the density
            zero, blank = jnp.zeros_like(value), jnp.zeros_like(point)
            score = coordinates.point(end.score / beta)
            there = PathWalker(point, zero, blank, end.value / beta, score)
        else:
            there, spent = path.walker_at(point), spent + 1
        moved = jnp.any(end.point != start.point)
        moved = moved & jnp.isfinite(value) & jnp.isfinite(there.value)
        pick = lambda new, old: jnp.where(moved, new, old)
        return jax.tree.map(pick, there, walker), chance, spent, defined

    def check_shape(self, shape: tuple[int, ...]) -> None:
        check_projection("from_blackjax", self.project, shape)
        dim, mass = self._coordinates(shape).dim, self.inverse_mass_matrix
        if self.algorithm.is_microcanonical and dim < 2:
            raise ValueError(
                f"blackjax.{self.algorithm.name} turns its velocity and needs at least "
                "two dimensions, but points have one."
            )
        if mass is not None and mass.shape not in ((dim,), (dim, dim)):
            raise ValueError(
                f"from_blackjax needs an `inverse_mass_matrix` of shape ({dim},) or "
                f"({dim}, {dim}), for the coordinates on the subspace of its points, "
                f"but got shape {mass.shape}."
            )

    def _coordinates(self, shape: tuple[int, ...]) -> SubspaceCoordinates:
        return coordinates_on("from_blackjax", self.project, shape)


class _Within(eqx.Module):
    """A log density as a function of coordinates."""

    log_density: LogDensity
    coordinates: SubspaceCoordinates

    def __call__(self, z: Float[Array, " coordinate"]) -> Scalar:
        return self.log_density(self.coordinates.point(z))
