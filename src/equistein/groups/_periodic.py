"""Symmetries of periodic coordinates: shifts of phases, particles in a cell."""

import functools
import itertools
from collections.abc import Hashable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int

from equistein._check_arguments import accept_integer_key, check_arguments
from equistein._numbers import check_periods
from equistein._products import matmul
from equistein._types import AnyKey, Point, Scalar
from equistein.groups._base import AbstractGroup, rotate
from equistein.groups._point_cloud import encode_species, PointCloud, species_text

Cell = tuple[tuple[float, ...], ...]


@check_arguments
class TorusTranslations(AbstractGroup):
    r"""The shifts of all phases of a point together, around their circles.

    $$(g_t x)_i = x_i + \tfrac{t}{2 \pi} P_i$$

    for densities that depend only on differences of phases. Points are not wrapped;
    `Periodic.wrap` does it. The representative has its first phase at 0 and the others
    from 0 to their periods. An element is an angle t. A kernel with this group needs a
    `PeriodicRBF` with the same periods as its base.

    Args:
        periods: The period $P_i$ of each coordinate of a point of shape `(n,)`,
            infinite for those that are not periodic.
    """

    periods: tuple[float, ...]

    def __init__(self, periods: Any):
        self.periods = check_periods("TorusTranslations", periods)

    def act(self, element: Float[Array, ""], point: Point) -> Point:
        self.check_shape(point.shape)
        shift = jnp.asarray(element, point.dtype) / (2 * jnp.pi)
        return point + shift * jnp.asarray(self._shifts(), point.dtype)

    def push(self, element: Float[Array, ""], vector: Point) -> Point:
        return vector

    def compose(self, left: Array, right: Array) -> Array:
        return left + right

    def inverse(self, element: Array) -> Array:
        return -element

    @accept_integer_key
    def sample(self, key: AnyKey, num: int) -> Float[Array, " num"]:
        return jr.uniform(key, (num,), maxval=2 * np.pi)

    def canonicalize(self, point: Point) -> Point:
        self.check_shape(point.shape)
        shifts = self._shifts()
        wraps, first = shifts > 0, int(np.argmax(shifts > 0))
        moved = point - point[first] * jnp.asarray(shifts / shifts[first], point.dtype)
        periods = jnp.asarray(np.where(wraps, shifts, 1), point.dtype)
        return jnp.where(wraps, moved % periods, moved).at[first].set(0)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if shape != (len(self.periods),):
            raise ValueError(
                f"TorusTranslations with {len(self.periods)} `periods` acts on points "
                f"of shape ({len(self.periods)},), but got points of shape {shape}. "
                "Give one period for each coordinate, or inf."
            )

    def _shifts(self) -> np.ndarray:
        """Return how far a full turn moves each coordinate."""
        return np.where(np.isfinite(self.periods), self.periods, 0)


class PeriodicMotion(eqx.Module):
    """Of `PeriodicCloud`: rotate all particles, shift them, then permute them."""

    rotation: Float[Array, "*batch dim dim"]
    shift: Float[Array, "*batch dim"]
    permutation: Int[Array, "*batch atom"]


@check_arguments
class PeriodicCloud(AbstractGroup):
    r"""Translations modulo a cell, its rotations, and permutations of like particles.

    $$(g x)_i = R\, x_{\pi(i)} + t$$

    for points of shape `(n, d)`, where R keeps the lattice of the cell: 48 rotations
    and reflections of a cube, of other cells fewer, and at least the inversion. Points
    are not wrapped; `wrap` moves particles into the cell. The representative is wrapped
    around a center, with the rotation and the order that put it first.

    Args:
        species: One label for each particle; particles with the same label are alike.
        cell: The sides of a rectangular cell, or its edges as rows, as ASE has them.
        reflections: Whether mirror images are the same.
    """

    species: tuple[int, ...]
    cell: Cell
    reflections: bool

    def __init__(
        self, species: Sequence[Hashable], cell: Any, *, reflections: bool = True
    ):
        self.species, self.cell = encode_species(species), as_cell(cell)
        self.reflections = reflections

    def __repr__(self) -> str:
        mirrored = "" if self.reflections else ", reflections=False"
        return f"PeriodicCloud({species_text(self.species)}, {self.cell}{mirrored})"

    @property
    def is_periodic(self) -> bool:
        return True

    @property
    def dim(self) -> int:
        return len(self.cell)

    @property
    def volume(self) -> float:
        return abs(float(np.linalg.det(self.cell)))

    @property
    def longest_cutoff(self) -> float:
        """Half the least distance of opposite faces: no other image is nearer."""
        return 0.5 / float(np.linalg.norm(np.linalg.inv(self.cell), axis=0).max())

    def check_cutoff(self, owner: str, cutoff: float | None) -> None:
        """Raise `ValueError` unless a cut-off is at most the longest."""
        if cutoff is None or cutoff > self.longest_cutoff * (1 + 1e-6):
            raise ValueError(
                f"{owner} needs `cutoff`, at most half the least distance of two faces "
                f"of the cell, {self.longest_cutoff:.4g}, but got {cutoff!r}."
            )

    def minimum_image(self, gaps: Float[Array, "*batch dim"]) -> Array:
        """Return differences of particles to their nearest images.

        Of a cell that is not rectangular, only up to `longest_cutoff`.
        """
        return jnp.stack(self.nearest(list(jnp.moveaxis(gaps, -1, 0))), axis=-1)

    def nearest(self, differences: Sequence[Array]) -> list[Array]:
        """Return the same for differences given as one array for each axis."""
        inverse = np.linalg.inv(self.cell)
        turns = [jnp.round(_combined(differences, axis)) for axis in inverse.T]
        pairs = zip(differences, np.array(self.cell).T, strict=True)
        return [gap - _combined(turns, row) for gap, row in pairs]

    def wrap(self, point: Point) -> Point:
        """Return the point with its particles in the cell."""
        self.check_shape(point.shape)
        cell = jnp.asarray(self.cell, point.dtype)
        return matmul(matmul(point, jnp.linalg.inv(cell)) % 1, cell)

    @accept_integer_key
    def start(self, key: AnyKey, num: int) -> Float[Array, "num atom dim"]:
        """Draw points whose particles are near the sites of a grid, in any order."""
        spacing = (self.volume / len(self.species)) ** (1 / self.dim)
        counts = np.ceil(np.linalg.norm(self.cell, axis=1) / spacing - 1e-6).astype(int)
        places = [(np.arange(count) + 0.5) / count for count in counts]
        grid = np.stack(np.meshgrid(*places), axis=-1).reshape(-1, self.dim)
        site_key, noise_key = jr.split(key)
        sites = jnp.asarray(grid @ np.array(self.cell), float)
        chosen = lambda key: jr.permutation(key, sites)[: len(self.species)]
        noise = jr.normal(noise_key, (num, len(self.species), self.dim))
        return jax.vmap(chosen)(jr.split(site_key, num)) + 0.05 * spacing * noise

    def rotations(self) -> Float[np.ndarray, "rotation dim dim"]:
        """Return the rotations, and reflections, that keep the lattice."""
        found = _rotations_of(self.cell)
        return found if self.reflections else found[np.linalg.det(found) > 0]

    def without_reflections(self) -> "PeriodicCloud":
        if not self.reflections:
            return self
        return eqx.tree_at(lambda group: group.reflections, self, False)

    def act(self, element: PeriodicMotion, point: Point) -> Point:
        return self._cloud.act(element, point) + element.shift[None].astype(point.dtype)

    def push(self, element: PeriodicMotion, vector: Point) -> Point:
        return self._cloud.act(element, vector)

    def compose(self, left: PeriodicMotion, right: PeriodicMotion) -> PeriodicMotion:
        rigid = self._cloud.compose(left, right)
        shift = matmul(left.rotation, right.shift[..., None])[..., 0] + left.shift
        return PeriodicMotion(rigid.rotation, shift, rigid.permutation)

    def inverse(self, element: PeriodicMotion) -> PeriodicMotion:
        back = self._cloud.inverse(element)
        shift = -matmul(back.rotation, element.shift[..., None])[..., 0]
        return PeriodicMotion(back.rotation, shift, back.permutation)

    @accept_integer_key
    def sample(self, key: AnyKey, num: int) -> PeriodicMotion:
        turn_key, shift_key, permutation_key = jr.split(key, 3)
        rotations = jr.choice(turn_key, jnp.asarray(self.rotations(), float), (num,))
        shifts = matmul(jr.uniform(shift_key, (num, self.dim)), jnp.asarray(self.cell))
        orders = self._cloud.sample(permutation_key, num).permutation
        return PeriodicMotion(rotations, shifts, orders)

    def canonicalize(self, point: Point) -> Point:
        self.check_shape(point.shape)
        centered = jax.vmap(lambda rotation: self._centered(rotate(rotation, point)))
        points, ranks = centered(jnp.asarray(self.rotations(), point.dtype))
        return self._cloud.sort(points[jnp.argmax(ranks)])

    def check_shape(self, shape: tuple[int, ...]) -> None:
        self._cloud.check_shape(shape)

    def contains(self, other: AbstractGroup) -> bool:
        if isinstance(other, PeriodicCloud) and self.cell == other.cell:
            return self._cloud.contains(other._cloud)
        return False

    @property
    def _cloud(self) -> PointCloud:
        return PointCloud(self.species, self.dim, self.reflections)

    def _centered(self, point: Point) -> tuple[Point, Scalar]:
        """Return a point around its circular mean, and a rank among rotated ones."""
        cell = jnp.asarray(self.cell, point.dtype)
        phases = 2 * jnp.pi * matmul(point, jnp.linalg.inv(cell))
        weights = jnp.asarray([[1.0 + kind] for kind in self.species], point.dtype)
        cos, sin = (jnp.sum(weights * f(phases), axis=0) for f in (jnp.cos, jnp.sin))
        phases = phases - jnp.arctan2(sin, cos)[None]
        phases = phases - 2 * jnp.pi * jnp.round(phases / (2 * jnp.pi))
        axes = 1 + jnp.arange(self.dim, dtype=point.dtype)[None]
        sums = phases + jnp.roll(phases, 1, 1)
        uneven = axes * jnp.sin(2 * phases + axes) + jnp.sin(sums)
        return matmul(phases / (2 * jnp.pi), cell), jnp.sum(weights * uneven)


def as_cell(cell: Any) -> Cell:
    """Return the edges of a cell as rows, or raise `ValueError`."""
    try:
        found = np.asarray(cell, float)
        found = np.diag(found) if found.ndim == 1 else found
    except (TypeError, ValueError):
        found = np.zeros((0, 0))
    good = found.shape in ((1, 1), (2, 2), (3, 3)) and np.isfinite(found).all()
    if good:  # the volume, over that of a rectangular cell
        good = abs(np.linalg.det(found)) > 1e-9 * np.prod(np.linalg.norm(found, axis=1))
    if not good:
        raise ValueError(
            "`cell` must be the sides of a rectangular cell, as (8.6, 8.6, 8.6), or "
            f"edges as rows, not flat, in at most three dimensions, but got {cell!r}."
        )
    return tuple(map(tuple, found.tolist()))


def _combined(arrays: Sequence[Array], factors: np.ndarray) -> Array:
    """Return the sum of arrays times factors, without those that are 0."""
    pairs = zip(factors, arrays, strict=True)
    return functools.reduce(jnp.add, [float(c) * array for c, array in pairs if c])


@functools.lru_cache(16)
def _rotations_of(cell: Cell) -> Float[np.ndarray, "rotation dim dim"]:
    """Return the orthogonal matrices that keep a lattice; the identity comes first."""
    # Along short edges their entries are whole numbers, which are -1, 0 and 1.
    edges, dim = _short_edges(cell), len(cell)
    entries = itertools.product((0, 1, -1), repeat=dim**2)
    whole = np.array(list(entries), float).reshape(-1, dim, dim)
    # Rows of edges: x = s C, so that x R^T = s M C with R^T = C^-1 M C.
    found = np.linalg.inv(edges) @ whole @ edges
    gaps = np.abs(found.swapaxes(1, 2) @ found - np.eye(dim)).max(axis=(1, 2))
    found = found[gaps < 1e-6].swapaxes(1, 2)
    is_other = np.trace(found, axis1=1, axis2=2) < dim - 1e-6
    return np.concatenate([np.eye(dim)[None], found[is_other]])


def _short_edges(cell: Cell) -> Float[np.ndarray, "dim dim"]:
    """Return edges of the same lattice that adding others to them does not shorten."""
    edges, done = np.array(cell), 0
    steps = np.array(list(itertools.product((0, 1, -1), repeat=len(cell))))
    while done < len(cell):
        others = edges[done] + steps[steps[:, done] == 0] @ edges
        lengths = np.linalg.norm(others, axis=1)
        is_shorter = lengths.min() < lengths[0] * (1 - 1e-9)
        edges[done] = others[np.argmin(lengths)] if is_shorter else edges[done]
        done = 0 if is_shorter else done + 1
    return edges
