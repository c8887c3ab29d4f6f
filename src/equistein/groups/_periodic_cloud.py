"""The symmetries of particles in a periodic cell."""

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
from equistein._products import matmul
from equistein._types import AnyKey, Point, Scalar
from equistein.groups._base import AbstractGroup, rotate
from equistein.groups._point_cloud import encode_species, in_runs, PointCloud

Cell = tuple[tuple[float, ...], ...]


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
        return f"PeriodicCloud({in_runs(self.species)}, {self.cell}{mirrored})"

    @property
    def dim(self) -> int:
        """The dimension of space."""
        return len(self.cell)

    @property
    def volume(self) -> float:
        """The volume of the cell."""
        return abs(float(np.linalg.det(self.cell)))

    @property
    def longest_cutoff(self) -> float:
        """Half the least distance of two opposite faces.

        Up to there the nearest image of a particle is the only one.
        """
        return 0.5 / float(np.linalg.norm(np.linalg.inv(self.cell), axis=0).max())

    def check_cutoff(self, owner: str, cutoff: float | None) -> None:
        """Raise `ValueError` unless a cut-off is at most the longest."""
        if cutoff is None or cutoff > self.longest_cutoff * (1 + 1e-6):
            raise ValueError(
                f"{owner} needs `cutoff`, at most half the least distance of two faces "
                f"of the cell, {self.longest_cutoff:.4g}, but got {cutoff!r}. Take a "
                "shorter one, or repeat the cell."
            )

    def minimum_image(
        self, differences: Float[Array, "*batch dim"]
    ) -> Float[Array, "*batch dim"]:
        """Return differences of particles to their nearest images.

        Of a cell that is not rectangular up to `longest_cutoff`; longer ones may be
        those to another image.
        """
        return jnp.stack(self.nearest(list(jnp.moveaxis(differences, -1, 0))), axis=-1)

    def nearest(self, differences: Sequence[Array]) -> list[Array]:
        """Return the same, of an array for each axis."""
        inverse = np.linalg.inv(self.cell)
        turns = [jnp.round(_combined(differences, column)) for column in inverse.T]
        rows = np.array(self.cell).T
        pairs = zip(differences, rows, strict=True)
        return [gap - _combined(turns, row) for gap, row in pairs]

    def wrap(self, point: Point) -> Point:
        """Return the point with its particles in the cell."""
        self.check_shape(point.shape)
        cell = jnp.asarray(self.cell, point.dtype)
        inside = matmul(point, jnp.linalg.inv(cell))
        return matmul(inside - jnp.floor(inside), cell)

    @accept_integer_key
    def start(self, key: AnyKey, num: int) -> Float[Array, "num atom dim"]:
        """Draw points whose particles are near the sites of a grid, in any order.

        They are shaken by a twentieth of the distance between particles.
        """
        spacing = (self.volume / len(self.species)) ** (1 / self.dim)
        lengths = np.linalg.norm(self.cell, axis=1)
        counts = np.ceil(lengths / spacing - 1e-6).astype(int)
        places = [(np.arange(count) + 0.5) / count for count in counts]
        grid = np.stack(np.meshgrid(*places), axis=-1).reshape(-1, self.dim)
        sites = jnp.asarray(grid @ np.array(self.cell), float)
        site_key, noise_key = jr.split(key)
        chosen = lambda key: jr.permutation(key, sites)[: len(self.species)]
        noise = jr.normal(noise_key, (num, len(self.species), self.dim))
        return jax.vmap(chosen)(jr.split(site_key, num)) + 0.05 * spacing * noise

    def rotations(self) -> Float[np.ndarray, "rotation dim dim"]:
        """Return the rotations, and reflections, that keep the lattice."""
        found = _rotations_of(self.cell)
        return found if self.reflections else found[np.linalg.det(found) > 0]

    def without_reflections(self) -> "PeriodicCloud":
        return PeriodicCloud(self.species, self.cell, reflections=False)

    def act(self, element: PeriodicMotion, point: Point) -> Point:
        self.check_shape(point.shape)
        moved = rotate(element.rotation, point) + element.shift[None].astype(
            point.dtype
        )
        return moved[element.permutation]

    def push(self, element: PeriodicMotion, vector: Point) -> Point:
        return rotate(element.rotation, vector)[element.permutation]

    def compose(self, left: PeriodicMotion, right: PeriodicMotion) -> PeriodicMotion:
        turned = matmul(left.rotation, right.shift[..., None])[..., 0]
        order = jnp.take_along_axis(right.permutation, left.permutation, axis=-1)
        rotation = matmul(left.rotation, right.rotation)
        return PeriodicMotion(rotation, turned + left.shift, order)

    def inverse(self, element: PeriodicMotion) -> PeriodicMotion:
        back = jnp.swapaxes(element.rotation, -1, -2)
        shift = -matmul(back, element.shift[..., None])[..., 0]
        return PeriodicMotion(back, shift, jnp.argsort(element.permutation, axis=-1))

    @accept_integer_key
    def sample(self, key: AnyKey, num: int) -> PeriodicMotion:
        rotation_key, shift_key, permutation_key = jr.split(key, 3)
        rotations = jnp.asarray(self.rotations(), float)
        chosen = rotations[jr.randint(rotation_key, (num,), 0, len(rotations))]
        places = jr.uniform(shift_key, (num, self.dim))
        orders = jax.vmap(self._cloud.sample_permutation)(
            jr.split(permutation_key, num)
        )
        return PeriodicMotion(chosen, matmul(places, jnp.asarray(self.cell)), orders)

    def canonicalize(self, point: Point) -> Point:
        self.check_shape(point.shape)
        rotations = jnp.asarray(self.rotations(), point.dtype)
        points, ranks = jax.vmap(lambda turn: self._centered(rotate(turn, point)))(
            rotations
        )
        return self._cloud.sort(points[jnp.argmax(ranks)])

    def check_shape(self, shape: tuple[int, ...]) -> None:
        expected = (len(self.species), self.dim)
        if shape != expected:
            raise ValueError(
                f"PeriodicCloud of {expected[0]} particles in {self.dim} dimensions "
                f"acts on points of shape {expected}, but got points of shape {shape}. "
                "Give one label in `species` for each particle."
            )

    def contains(self, other: AbstractGroup) -> bool:
        if not isinstance(other, PeriodicCloud) or self.cell != other.cell:
            return False
        return self._cloud.contains(other._cloud)

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
        uneven = axes * jnp.sin(2 * phases + axes) + jnp.sin(
            phases + jnp.roll(phases, 1, 1)
        )
        return matmul(phases / (2 * jnp.pi), cell), jnp.sum(weights * uneven)


def as_cell(cell: Any) -> Cell:
    """Return the edges of a cell as rows, or raise `ValueError`."""
    found = np.zeros((1, 1))
    try:
        found = np.asarray(cell, float)
        found = np.diag(found) if found.ndim == 1 else found
        good = found.ndim == 2 and np.isfinite(found).all()
        good = good and abs(np.linalg.det(found)) > 1e-9 * np.abs(found).max() ** len(
            found
        )
    except (TypeError, ValueError):
        good = False
    if not good:
        raise ValueError(
            "`cell` must be the sides of a rectangular cell, as (8.6, 8.6, 8.6), or "
            f"its edges as rows, as atoms.cell[:], but got {cell!r}."
        )
    return tuple(map(tuple, found.tolist()))


def _combined(arrays: Sequence[Array], factors: np.ndarray) -> Array:
    """Return the sum of arrays times factors, without those that are 0."""
    terms = [float(c) * array for c, array in zip(factors, arrays, strict=True) if c]
    return functools.reduce(jnp.add, terms)


@functools.lru_cache(16)
def _rotations_of(cell: Cell) -> Float[np.ndarray, "rotation dim dim"]:
    """Return the orthogonal matrices that keep a lattice; the identity comes first.

    In the cell's own coordinates they have whole entries, of which those of a cell that
    is not too oblique are -1, 0 and 1.
    """
    edges, dim = np.array(cell), len(cell)
    entries = itertools.product((0, 1, -1), repeat=dim**2)
    whole = np.array(list(entries), float).reshape(-1, dim, dim)
    # Rows of edges: x = s C, so that x R^T = s M C with R^T = C^-1 M C.
    found = np.linalg.inv(edges) @ whole @ edges
    gaps = np.abs(found.swapaxes(1, 2) @ found - np.eye(dim)).max(axis=(1, 2))
    found = found[gaps < 1e-6].swapaxes(1, 2)
    first = np.abs(found - np.eye(dim)).max(axis=(1, 2)) < 1e-6
    return np.concatenate([np.eye(dim)[None], found[~first]])
