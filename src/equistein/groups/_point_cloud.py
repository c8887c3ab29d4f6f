"""The symmetries of a set of particles in space."""

import abc
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
from equistein.groups._rotations import random_rotations


class RigidPermutation(eqx.Module):
    """Of `PointCloud` and `Molecule`: rotate all particles, then permute them."""

    rotation: Float[Array, "*batch dim dim"]
    permutation: Int[Array, "*batch atom"]


def encode_species(species: Sequence[Hashable]) -> tuple[int, ...]:
    """Number the labels in order of appearance: `"COO"` becomes `(0, 1, 1)`."""
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


def species_text(species: Sequence[int]) -> str:
    """Return the text of labels, equal ones together: `(0,) * 4 + (1,) * 2`."""
    runs = [(label, len(tuple(run))) for label, run in itertools.groupby(species)]
    return " + ".join(f"({label},) * {num}" for label, num in runs)


class AbstractCloud(AbstractGroup):
    """Motions of space, times a group of permutations of the particles.

    The representative is centered and along its principal axes, with signs from the
    third moments, and then permuted. It may jump for a symmetric configuration.
    """

    species: eqx.AbstractVar[tuple[int, ...]]
    dim: eqx.AbstractVar[int]
    reflections: eqx.AbstractVar[bool]

    @property
    @abc.abstractmethod
    def num_permutations(self) -> int:
        """The number of permutations."""

    @abc.abstractmethod
    def permutations(self) -> Int[np.ndarray, "permutation atom"]:
        """Return all `num_permutations`; the identity comes first."""

    @abc.abstractmethod
    def sample_permutation(self, key: Key) -> Int[Array, " atom"]:
        """Draw one of all permutations, each as likely."""

    @abc.abstractmethod
    def sort(self, point: Point) -> Point:
        """Return the representative of a point over the permutations alone."""

    def without_reflections(self) -> "AbstractCloud":
        if not self.reflections:
            return self
        return eqx.tree_at(lambda group: group.reflections, self, False)

    def act(self, element: PyTree, point: Point) -> Point:
        self.check_shape(point.shape)
        return rotate(element.rotation, point)[element.permutation]

    def compose(self, left: PyTree, right: PyTree) -> PyTree:
        order = jnp.take_along_axis(right.permutation, left.permutation, axis=-1)
        return RigidPermutation(matmul(left.rotation, right.rotation), order)

    def inverse(self, element: PyTree) -> PyTree:
        order = jnp.argsort(element.permutation, axis=-1)
        return RigidPermutation(jnp.swapaxes(element.rotation, -1, -2), order)

    @accept_integer_key
    def sample(self, key: AnyKey, num: int) -> RigidPermutation:
        rotation_key, permutation_key = jr.split(key)
        rotations = random_rotations(rotation_key, self.dim, num, self.reflections)
        keys = jr.split(permutation_key, num)
        return RigidPermutation(rotations, jax.vmap(self.sample_permutation)(keys))

    def canonicalize(self, point: Point) -> Point:
        centered = self.project(point)
        _, axes = jnp.linalg.eigh(matmul(centered.T, centered))
        turned = matmul(centered, axes[:, ::-1])
        skew = jnp.sum(turned**3, axis=0)
        signs = jnp.where(skew < 0, -1.0, 1.0).astype(point.dtype)
        if not self.reflections:
            handedness = jnp.sign(jnp.linalg.det(axes[:, ::-1])) * jnp.prod(signs)
            signs = signs.at[-1].multiply(handedness)
        return self.sort(turned * signs[None, :])

    def project(self, point: Point) -> Point:
        self.check_shape(point.shape)
        return point - jnp.mean(point, axis=0, keepdims=True)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        expected = (len(self.species), self.dim)
        if shape != expected:
            raise ValueError(
                f"The group of {expected[0]} particles in {self.dim} dimensions acts on"
                f" points of shape {expected}, but got points of shape {shape}. Give "
                "one label in `species`, or one atom in `topology`, for each particle."
            )


@check_arguments
class PointCloud(AbstractCloud):
    """Motions of space, reflections, and permutations of like particles.

    E(d), or SE(d) without reflections, times the permutations within each species.
    Acts on points of shape `(n, d)`, of which it keeps the center of mass at the
    origin, since translations are not compact: `project` goes there. The representative
    has like particles sorted by their first coordinate. Where particles are bonded,
    `Molecule` has the permutations that keep the bonds.

    Args:
        species: One label for each particle; particles with the same label are alike.
        dim: The dimension $d$ of space.
        reflections: Whether mirror images are the same.
    """

    species: tuple[int, ...] = eqx.field(converter=encode_species)
    dim: int
    reflections: bool = True

    def __check_init__(self):
        check_integers("PointCloud", dim=self.dim)

    def __repr__(self) -> str:
        mirrored = "" if self.reflections else ", reflections=False"
        return f"PointCloud({species_text(self.species)}, dim={self.dim}{mirrored})"

    def sort(self, point: Point) -> Point:
        order = jnp.lexsort((point[:, 0], np.array(self.species)))
        return point.at[np.argsort(self.species, kind="stable")].set(point[order])

    def contains(self, other: AbstractGroup) -> bool:
        if not isinstance(other, AbstractCloud):
            return False
        pairs = set(zip(other.species, self.species, strict=False))
        is_coarser = len(pairs) == len(set(other.species))
        same = (len(self.species), self.dim) == (len(other.species), other.dim)
        return same and is_coarser and self.reflections >= other.reflections

    @property
    def num_permutations(self) -> int:
        return math.prod(math.factorial(len(like)) for like in self._members())

    def permutations(self) -> Int[np.ndarray, "permutation atom"]:
        members = self._members()
        choices = itertools.product(*map(itertools.permutations, members))
        places = np.argsort(np.concatenate(members))
        return np.array([np.concatenate(choice)[places] for choice in choices])

    @accept_integer_key
    def sample_permutation(self, key: AnyKey) -> Int[Array, " atom"]:
        permutation = jnp.arange(len(self.species))
        groups = self._members()
        for members, group_key in zip(groups, jr.split(key, len(groups)), strict=True):
            shuffled = jr.permutation(group_key, members)
            permutation = permutation.at[members].set(shuffled)
        return permutation

    def _members(self) -> list[Int[np.ndarray, " like"]]:
        labels = np.array(self.species)
        return [np.flatnonzero(labels == kind) for kind in sorted(set(self.species))]
