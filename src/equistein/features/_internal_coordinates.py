"""Distances, torsions and other functions of a few atoms each."""

import abc
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein._check_arguments import check_arguments
from equistein._products import einsum
from equistein._types import Features, Point
from equistein.features._base import AbstractFeatures, derivatives_of, smooth_norm
from equistein.groups import AbstractCloud, PointCloud

SMOOTHED = 1e-4  # in the units of the points
Term = tuple[Callable[..., Array], np.ndarray]
"""A function of a few atoms, and the atoms of each of its values."""


class AbstractInternalCoordinates(AbstractFeatures):
    """Functions of a few atoms each, constant under the motions of space."""

    @abc.abstractmethod
    def terms(self) -> list[Term]:
        """Return the functions of a few atoms, and whose they are."""

    def sum_alike(
        self, values: Float[Array, "term *value"], atoms: np.ndarray
    ) -> Float[Array, "feature *value"]:
        """Return the sums over terms that share a feature; by default none do."""
        return values

    def __call__(self, point: Point) -> Features:
        self.group(point.shape)
        parts = [self.sum_alike(jax.vmap(f)(point[at]), at) for f, at in self.terms()]
        return jnp.concatenate([part.ravel() for part in parts])

    def derivatives(self, point: Point) -> tuple[Float[Array, "feature dim"], Features]:
        self.group(point.shape)
        jacobians, laplacians = [], []
        for function, members in self.terms():
            each = lambda x, function=function: derivatives_of(function, x)
            slopes, bends = jax.vmap(each)(point[members])
            atoms = jnp.asarray(np.eye(len(point))[members], point.dtype)
            jac = einsum("tksd,tsn->tknd", slopes, atoms)
            jac, bends = (self.sum_alike(each, members) for each in (jac, bends))
            jacobians.append(jac.reshape(-1, point.size))
            laplacians.append(bends.ravel())
        return jnp.concatenate(jacobians), jnp.concatenate(laplacians)


@check_arguments
class Torsions(AbstractInternalCoordinates):
    r"""$\cos \phi$ and $\sin \phi$ of dihedral angles, constant on orbits of SE(3).

    $\phi$, in radians by `angles`, is 0 where atoms 1 and 4 are cis, and positive where
    4 is clockwise of 1, looking from 2 to 3.

    Args:
        atoms: The four atoms of each angle, as `mdtraj.compute_phi(frames)[0]`.
    """

    atoms: tuple[tuple[int, ...], ...]

    def __init__(self, atoms: Sequence[Any] | np.ndarray):
        self.atoms = _as_rows("Torsions needs `atoms`", atoms, 4)

    def terms(self) -> list[Term]:
        return [(waves, np.array(self.atoms))]

    def angles(self, point: Point) -> Float[Array, " torsion"]:
        r"""Return the angles, in $(-\pi, \pi]$."""
        cos, sin = self(point).reshape(-1, 2).T
        return jnp.arctan2(sin, cos)

    def group(self, shape: tuple[int, ...]) -> AbstractCloud:
        return _group_of(self.atoms, shape, 3).without_reflections()


@check_arguments
class Distances(AbstractInternalCoordinates):
    r"""The distances $\sqrt{r^2 + 10^{-8}}$ of pairs of atoms, in the order given.

    Constant on the orbits of E(d). `SortedDistances` are of particles that are alike.

    Args:
        pairs: The two atoms of each distance, from 0 on.
    """

    pairs: tuple[tuple[int, ...], ...]

    def __init__(self, pairs: Sequence[Any] | np.ndarray):
        self.pairs = _as_rows("Distances needs `pairs`", pairs, 2)

    def terms(self) -> list[Term]:
        return [(length, np.array(self.pairs))]

    def group(self, shape: tuple[int, ...]) -> PointCloud:
        return _group_of(self.pairs, shape, shape[-1])


def length(ends: Float[Array, "2 dim"]) -> Float[Array, " function"]:
    return smooth_norm(ends[0] - ends[1], SMOOTHED)[None]


def waves(atoms: Float[Array, "4 3"], num: int = 1) -> Float[Array, " function"]:
    r"""Return $\cos n \phi$ and $\sin n \phi$ of a torsion, n up to `num`."""
    before, axis, after = jnp.diff(atoms, axis=0)
    left, right = jnp.cross(before, axis), jnp.cross(axis, after)
    size = smooth_norm(left, SMOOTHED) * smooth_norm(right, SMOOTHED)
    cos = jnp.sum(left * right) / size
    along = jnp.sum(jnp.cross(left, right) * axis) / smooth_norm(axis, SMOOTHED)
    sin = along / size
    found, x, y = [], cos, sin
    for _ in range(num):
        found += [x, y]
        x, y = x * cos - y * sin, x * sin + y * cos
    return jnp.stack(found)


def _as_rows(name: str, rows: Any, num: int) -> tuple[tuple[int, ...], ...]:
    """Return rows of as many different atoms, or raise `ValueError`."""
    try:
        found = np.asarray(rows)
    except ValueError:  # of other lengths, as all that `mdtraj.compute_phi` returns
        found = np.zeros((0, 0), int)
    good = found.ndim == 2 and found.shape[1] == num and found.dtype.kind in "iu"
    if not good or any(len(set(row)) < num or min(row) < 0 for row in found.tolist()):
        raise ValueError(
            f"{name}, rows of {num} different atoms from 0 on, but got {rows!r}."
        )
    return tuple(map(tuple, found.tolist()))


def _group_of(atoms: Any, shape: tuple[int, ...], dim: int) -> PointCloud:
    """Return the group of distinct atoms, or raise `ValueError` if some are missing."""
    last = int(np.max(atoms))
    if len(shape) != 2 or shape[0] <= last or shape[1] != dim:
        raise ValueError(
            f"Features of atoms up to {last} need points of shape (n, {dim}) with n > "
            f"{last}, but got points of shape {shape}."
        )
    return PointCloud(range(shape[0]), dim)
