"""All groups, and what their tests share."""

import functools

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from registries import normal

from equistein.groups import (
    AbstractCloud,
    Cyclic,
    Dihedral,
    Direct,
    ImageRotations,
    Molecule,
    Orthogonal,
    PeriodicCloud,
    Permutations,
    PointCloud,
    Product,
    SignedPermutations,
    Signs,
    SpecialOrthogonal,
    TorusTranslations,
    Trivial,
)

_PARTS = (((3,), (0,)), ((2,), ()), ((2, 3), (1,)))  # a flat point of 11 numbers
GROUPS = {  # adding a group to the library means adding a line here
    "trivial": (Trivial, (2, 3)),
    "cyclic 4": (lambda: Cyclic(4), (2,)),
    "cyclic 5 on three vectors": (lambda: Cyclic(5), (3, 2)),
    "dihedral 5": (lambda: Dihedral(5), (2,)),
    "turns of images": (ImageRotations, (4, 4, 2)),
    "turns of odd images": (ImageRotations, (3, 3)),
    "turns and reflections": (lambda: ImageRotations(reflections=True), (5, 5, 1)),
    "so 2": (lambda: SpecialOrthogonal(2), (2,)),
    "so 3": (lambda: SpecialOrthogonal(3), (3,)),
    "so 3 on four vectors": (lambda: SpecialOrthogonal(3), (4, 3)),
    "o 2": (lambda: Orthogonal(2), (2,)),
    "o 3": (lambda: Orthogonal(3), (3,)),
    "cloud in the plane": (lambda: PointCloud((0, 0, 0, 0), 2), (4, 2)),
    "cloud of two species": (lambda: PointCloud((0, 1, 1, 0), 3), (4, 3)),
    "cloud without reflections": (
        lambda: PointCloud("COOC", 3, reflections=False),
        (4, 3),
    ),
    "cloud of a molecule": (lambda: Molecule((((0, 1), (0, 2)), (8, 1, 1))), (3, 3)),
    "cloud of two molecules": (
        lambda: Molecule((((0, 1), (2, 3)), (9, 1, 9, 1)), reflections=True),
        (4, 3),
    ),
    "permutations": (lambda: Permutations(3), (3, 2)),
    "permutations of parts": (lambda: Permutations(3, _PARTS), (11,)),
    "permutations of both axes": (
        lambda: Permutations(3, (((3, 3), (0, 1)), ((3,), (0,)))),
        (12,),
    ),
    "signs": (lambda: Signs(2), (2, 2)),
    "signs of parts": (lambda: Signs(3, _PARTS[::2]), (9,)),
    "signed permutations of parts": (lambda: SignedPermutations(3, _PARTS[::2]), (9,)),
    "swaps and turns": (lambda: Product(Permutations(3), Cyclic(4)), (3, 2)),
    "swaps and rotations": (
        lambda: Product(Permutations(2), SpecialOrthogonal(3)),
        (2, 3),
    ),
    "parts of a point": (
        lambda: Direct((Permutations(2), (2, 2)), (Trivial(), (1,)), (Signs(1), (2,))),
        (7,),
    ),
    "parts, one of them continuous": (
        lambda: Direct((SpecialOrthogonal(2), (3, 2)), (Permutations(2), (2,))),
        (8,),
    ),
    "square cell": (lambda: PeriodicCloud("AAB", (2.0, 2.0)), (3, 2)),
    "cubic cell": (
        lambda: PeriodicCloud("AAB", (2.0, 2.0, 2.0), reflections=False),
        (3, 3),
    ),
    "oblique cell": (
        lambda: PeriodicCloud("ABBA", [[2, 0, 0], [0.5, 1.8, 0], [0.3, 0.2, 2.5]]),
        (4, 3),
    ),
    "shifts of phases": (lambda: TorusTranslations([2.0, np.inf, 3.0]), (3,)),
}
every_group = pytest.mark.parametrize(
    ("make", "shape"), GROUPS.values(), ids=GROUPS.keys()
)
FINITE = {
    name: (make, shape)
    for name, (make, shape) in GROUPS.items()
    if make().order is not None
}
every_finite_group = pytest.mark.parametrize(
    ("make", "shape"), FINITE.values(), ids=FINITE.keys()
)
ROTATIONS = {
    name: (make, shape)
    for name, (make, shape) in GROUPS.items()
    if name not in FINITE
    and hasattr(make(), "dim")
    and not isinstance(make(), PeriodicCloud)
}
every_group_of_rotations = pytest.mark.parametrize(
    ("make", "shape"), ROTATIONS.values(), ids=ROTATIONS.keys()
)
every_precision = pytest.mark.parametrize(
    ("dtype", "tolerance"), [(jnp.float32, 2e-5), (jnp.float64, 1e-12)]
)


def pick(elements, index):
    return jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)[index]), elements)


@functools.cache
def compiled(group, method):
    """Return a method of a group, over stacked elements or points."""
    axes = {"act": (0, None), "compose": (0, 0), "inverse": 0, "canonicalize": 0}
    return jax.jit(jax.vmap(getattr(group, method), axes[method]))


@functools.cache
def _orbit(group):
    return jax.jit(group.orbit)


def orbit(group, point):
    """Return the orbit of a finite group, compiled once for it."""
    return np.asarray(_orbit(group)(point))


@functools.cache
def _sampler(group, num):
    return jax.jit(lambda key: group.sample(key, num))


def sample(group, key, num=8):
    """Draw elements, compiled once for a group."""
    return _sampler(group, num)(key)


def move(group, elements, point):
    return np.asarray(compiled(group, "act")(elements, point))


def canonicalize(group, points):
    return np.asarray(compiled(group, "canonicalize")(points))


def matrices_of(group, elements):
    clouds = AbstractCloud | PeriodicCloud
    return np.asarray(elements.rotation if isinstance(group, clouds) else elements)


def reflects(group):
    return isinstance(group, Orthogonal) or getattr(group, "reflections", False)


def are_elements(group, elements, point):
    """Whether all are elements of the group, told by what they do to a point."""
    if group.order is not None:
        gaps = move(group, elements, point)[:, None] - orbit(group, point)
        return np.all(np.min(np.max(np.abs(flat(gaps, 2)), axis=2), axis=1) < 1e-12)
    if isinstance(group, TorusTranslations):
        return np.all(np.isfinite(elements))
    if isinstance(group, Product | Direct):
        shapes = getattr(group, "shapes", [point.shape] * len(group.groups))
        parts = zip(group.groups, elements, shapes, strict=True)
        return all(
            are_elements(g, e, normal(jr.key(0), shape)) for g, e, shape in parts
        )
    matrices = matrices_of(group, elements)
    good = np.allclose(matrices @ matrices.swapaxes(1, 2), np.eye(group.dim))
    good &= reflects(group) or np.all(np.linalg.det(matrices) > 0)
    if isinstance(group, AbstractCloud):
        orders = np.asarray(elements.permutation)
        gaps = orders[:, None] - group.permutations()[None]
        good &= np.all(np.any(np.all(gaps == 0, axis=2), axis=1))
    if isinstance(group, PeriodicCloud):
        edges = np.array(group.cell)
        whole = edges @ matrices.swapaxes(1, 2) @ np.linalg.inv(edges)
        labels = np.array(group.species)
        good &= np.allclose(whole, np.round(whole))
        good &= np.all(labels[np.asarray(elements.permutation)] == labels)
    return good


def flat(array, axes):
    return array.reshape(*array.shape[:axes], -1)
