"""The symmetries of a set of particles in space."""

import itertools
import math
from collections.abc import Hashable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from equistein._check_arguments import accept_integer_key, check_arguments
from equistein._numbers import check_integers
from equistein._products import matmul
from equistein._types import AnyKey, Key, Point
from equistein.groups._base import AbstractGroup, rotate
from equistein.groups._rotations import special_orthogonal


class RigidPermutation(eqx.Module):
    """An element of `PointCloud`: rotate all particles, then permute them."""

    rotation: Float[Array, "*batch dim dim"]
    permutation: Int[Array, "*batch atom"]


def encode_species(species: Sequence[Hashable]) -> tuple[int, ...]:
    """Number the labels in order of appearance: `"COO"` becomes `(0, 1, 1)`.

    Raises:
        ValueError: If `species` is empty or not a sequence of labels.
    """
    numbers: dict[Hashable, int] = {}
    try:
        encoded = tuple(numbers.setdefault(label, len(numbers)) for label in species)
    except TypeError:
        encoded = ()
    if not encoded:
        raise ValueError(
            "`species` needs one label for each particle, such as (0, 0, 0, 0) or "
            f"'CCOH', but got {species!r}."
        )
    return encoded


@check_arguments
class PointCloud(AbstractGroup):
    """Motions of space, reflections, and permutations of like particles.

    E(d), or SE(d) without reflections, times the permutations within each species.
    Acts on points of shape `(n, d)`. Translations are not compact, so everything
    lives on the subspace whose center of mass is the origin: `project` goes there,
    and the elements are rotations and permutations.

    The representative is centered, along its principal axes (signs from the third
    moments), with like particles sorted by their first coordinate. It may jump for a
    symmetric configuration.

    Args:
        species: One label for each particle; particles with the same label are alike.
        dim: The dimension $d$ of space.
        reflections: Whether mirror images are the same.

    Raises:
        ValueError: If `species` is empty or no sequence, or `dim` is not positive.
    """

    species: tuple[int, ...] = eqx.field(converter=encode_species)
    dim: int
    reflections: bool = True

    def __check_init__(self):
        check_integers("PointCloud", dim=self.dim)

    def __repr__(self) -> str:
        runs = [
            (label, len(tuple(run))) for label, run in itertools.groupby(self.species)
        ]
        species = " + ".join(f"({label},) * {num}" for label, num in runs)
        mirrored = "" if self.reflections else ", reflections=False"
        return f"PointCloud({species}, dim={self.dim}{mirrored})"

    def act(self, element: PyTree, point: Point) -> Point:
        self.check_shape(point.shape)
        return rotate(element.rotation, point)[element.permutation]

    def compose(self, left: PyTree, right: PyTree) -> PyTree:
        return RigidPermutation(
            matmul(left.rotation, right.rotation),
            jnp.take_along_axis(right.permutation, left.permutation, axis=-1),
        )

    def inverse(self, element: PyTree) -> PyTree:
        return RigidPermutation(
            jnp.swapaxes(element.rotation, -1, -2),
            jnp.argsort(element.permutation, axis=-1),
        )

    @accept_integer_key
    def sample(self, key: AnyKey, num: int) -> RigidPermutation:
        rotation_key, permutation_key = jr.split(key)
        rotations = (
            jr.orthogonal(rotation_key, self.dim, (num,))
            if self.reflections
            else special_orthogonal(rotation_key, self.dim, num)
        )
        keys = jr.split(permutation_key, num)
        return RigidPermutation(rotations, jax.vmap(self._permutation)(keys))

    def canonicalize(self, point: Point) -> Point:
        centered = self.project(point)
        _, axes = jnp.linalg.eigh(matmul(centered.T, centered))
        turned = matmul(centered, axes[:, ::-1])
        skew = jnp.sum(turned**3, axis=0)
        signs = jnp.where(skew < 0, -1.0, 1.0).astype(point.dtype)
        if not self.reflections:
            handedness = jnp.sign(jnp.linalg.det(axes[:, ::-1])) * jnp.prod(signs)
            signs = signs.at[-1].multiply(handedness)
        turned = turned * signs[None, :]
        for members in self._members():
            order = jnp.argsort(turned[members, 0])
            turned = turned.at[members].set(turned[members][order])
        return turned

    def project(self, point: Point) -> Point:
        self.check_shape(point.shape)
        return point - jnp.mean(point, axis=0, keepdims=True)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        expected = (len(self.species), self.dim)
        if shape != expected:
            raise ValueError(
                f"PointCloud with {expected[0]} `species` and `dim` {self.dim} acts on "
                f"points of shape {expected}, but got points of shape {shape}. Give "
                "one species label for each particle, and the dimension of space."
            )

    def without_reflections(self) -> "PointCloud":
        if not self.reflections:
            return self
        return PointCloud(self.species, self.dim, reflections=False)

    @property
    def num_permutations(self) -> int:
        """The number of permutations within the species."""
        return math.prod(
            math.factorial(self.species.count(kind)) for kind in set(self.species)
        )

    def permutations(self) -> Int[np.ndarray, "permutation atom"]:
        """Return all `num_permutations` of the species; the identity comes first."""
        members = self._members()
        choices = itertools.product(*map(itertools.permutations, members))
        permutations = np.tile(np.arange(len(self.species)), (self.num_permutations, 1))
        for row, choice in zip(permutations, choices, strict=True):
            for like, shuffled in zip(members, choice, strict=True):
                row[like] = shuffled
        return permutations

    def _members(self) -> list[Int[np.ndarray, " like"]]:
        labels = np.array(self.species)
        return [np.flatnonzero(labels == kind) for kind in sorted(set(self.species))]

    def _permutation(self, key: Key) -> Int[Array, " atom"]:
        permutation = jnp.arange(len(self.species))
        groups = self._members()
        for members, group_key in zip(groups, jr.split(key, len(groups)), strict=True):
            shuffled = jr.permutation(group_key, members)
            permutation = permutation.at[members].set(shuffled)
        return permutation
