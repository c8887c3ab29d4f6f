"""The symmetries of a molecule: motions of space, and automorphisms of its bonds."""

import dataclasses
import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Int

from equistein._check_arguments import accept_integer_key, check_arguments
from equistein._limits import check_memory
from equistein._types import AnyKey, Point
from equistein.groups._point_cloud import AbstractCloud, encode_species

Bonds = tuple[tuple[int, int], ...]
Near = Sequence[Sequence[int]]


@check_arguments
class Molecule(AbstractCloud):
    r"""Motions of space, times the automorphisms of the bonds.

    SE(3), or E(3) with reflections, times the permutations of the atoms that keep
    elements and bonds: of the hydrogens of a methyl group, of equivalent atoms of a
    ring, of identical molecules. Acts on points of shape `(atom, 3)`, centered as in
    `PointCloud`. The orders of bonds do not count, so that both oxygens of a
    carboxylate are alike. Mirror images differ, as a molecule may be chiral.

    Automorphisms are found by color refinement and backtracking and kept as a chain of
    stabilizers, of which each is a product: however many, they are counted, drawn and
    used for the representative. `species` are the orbits of the atoms.

    Args:
        topology: A molecule of RDKit, a topology of OpenMM or mdtraj, or a pair of
            bonds, as pairs of atoms from 0 on, and the atomic number of each atom. All
            hydrogens need a bond.
        reflections: Whether mirror images are the same.

    References:
        McKay and Piperno (2014), Practical graph isomorphism II, for the search; Sims
        (1970), Computational methods in the study of permutation groups, for the chain.
    """

    atomic_numbers: tuple[int, ...]
    bonds: Bonds
    species: tuple[int, ...]
    reflections: bool
    dim: int

    def __init__(self, topology: Any, *, reflections: bool = False):
        self.atomic_numbers, self.bonds = _read(topology)
        self.reflections, self.dim = reflections, 3
        atoms = np.arange(len(self.atomic_numbers))
        self.species = encode_species(self.orbits(atoms[:, None]).tolist())

    @property
    def num_permutations(self) -> int:
        return math.prod(self._chain.sizes.tolist())

    def permutations(self) -> Int[np.ndarray, "permutation atom"]:
        num, chain = self.num_permutations, self._chain
        needed = 8 * num * len(self.species)
        check_memory(f"All {num} automorphisms", needed, "`sample` some")
        found = np.arange(len(self.species))[None]
        for level in reversed(np.split(chain.table, chain.starts[1:])):
            found = level[:, found].reshape(-1, len(self.species))
        return found

    def neighbors(self) -> list[list[int]]:
        """Return the atoms that each atom is bonded to."""
        near: list[list[int]] = [[] for _ in self.atomic_numbers]
        for i, j in self.bonds:
            near[i].append(j)
            near[j].append(i)
        return near

    def orbits(self, rows: Int[np.ndarray, "row atom"]) -> Int[np.ndarray, " row"]:
        """Return the first row of the orbit of each row, in either direction.

        The rows are all atoms, bonds, angles or torsions.
        """
        one_way = lambda row: min(row, row[::-1])
        places = {tuple(one_way(row)): i for i, row in enumerate(rows.tolist())}
        moved = self._chain.generators[:, rows].tolist()
        images = [[places[tuple(one_way(row))] for row in each] for each in moved]
        labels = np.arange(len(rows))
        before = labels[:0]
        while not np.array_equal(labels, before):
            before = labels
            each = labels[np.array(images, int).reshape(-1, len(rows))]
            labels = np.vstack([labels, each]).min(axis=0)
        return labels

    @accept_integer_key
    def sample_permutation(self, key: AnyKey) -> Int[Array, " atom"]:
        chain, table = self._chain, jnp.asarray(self._chain.table)
        rows = jr.randint(key, chain.sizes.shape, 0, jnp.asarray(chain.sizes))
        rows = rows + jnp.asarray(chain.starts)
        step = lambda found, row: (found[table[row]], None)
        return jax.lax.scan(step, jnp.arange(len(self.species)), rows)[0]

    def sort(self, point: Point) -> Point:
        # The atom with the largest first coordinate of all that may take the place of
        # the first base, then of those that may take that of the second, and so on.
        chain, table = self._chain, jnp.asarray(self._chain.table)
        levels = np.repeat(np.arange(len(chain.sizes)), chain.sizes)
        atoms = chain.table[np.arange(len(levels)), chain.bases[levels]]

        def step(point, level):
            along = jnp.where(levels == level, point[atoms, 0], -jnp.inf)
            return point[table[jnp.argmax(along)]], None

        return jax.lax.scan(step, point, jnp.arange(len(chain.sizes)))[0]

    @property
    def _chain(self) -> "_Chain":
        return _chain_of(self.atomic_numbers, tuple(map(tuple, self.neighbors())))


def _read(topology: Any) -> tuple[tuple[int, ...], Bonds]:
    """Return atomic numbers and bonds, or raise `ValueError`."""
    if (atoms_of := getattr(topology, "GetAtoms", None)) is not None:  # RDKit
        numbers = [atom.GetAtomicNum() for atom in atoms_of()]
        pairs = [(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in topology.GetBonds()]
    elif bonds := getattr(topology, "bonds", None):  # OpenMM, mdtraj
        listed: Any = lambda each: list(each() if callable(each) else each)  # type: ignore
        elements = [atom.element for atom in listed(topology.atoms)]
        numbers = [getattr(each, "atomic_number", 0) for each in elements]
        pairs = [(bond[0].index, bond[1].index) for bond in listed(bonds)]
    elif isinstance(topology, tuple | list) and len(topology) == 2:
        pairs, numbers = topology
    else:
        raise ValueError(
            "Molecule needs `topology`, a molecule of RDKit, a topology of OpenMM or "
            "mdtraj, or a pair of bonds and atomic numbers such as "
            f"([(0, 1), (0, 2)], [8, 1, 1]), but got {type(topology).__name__}."
        )
    numbers = tuple(int(number) for number in numbers)
    bonds = tuple(sorted({(int(min(pair)), int(max(pair))) for pair in pairs}))
    for bond in bonds:
        if not 0 <= bond[0] < bond[1] < len(numbers):
            raise ValueError(
                f"Molecule needs `topology` with bonds of two of its {len(numbers)} "
                f"atoms, numbered from 0, but got {bond}."
            )
    bonded = {atom for bond in bonds for atom in bond}
    alone = [i for i, number in enumerate(numbers) if number == 1 and i not in bonded]
    if alone or not bonds:
        missing = f"atom {alone[0]}, a hydrogen, has none" if bonds else "it has none"
        raise ValueError(
            f"Molecule needs `topology` with bonds of all {len(numbers)} atoms, but "
            f"{missing}. Read it from a file with CONECT records, call "
            "`create_standard_bonds()` of mdtraj, or give bonds and atomic numbers."
        )
    return numbers, bonds


@dataclasses.dataclass(frozen=True)
class _Chain:
    """A chain of stabilizers, each of all bases before it."""

    # The rows of `table` of one level are permutations of that stabilizer, one for each
    # atom that may take the place of the level's base. A product of a row of each
    # level, the first one acting last, is each automorphism once.
    bases: Int[np.ndarray, " level"]
    sizes: Int[np.ndarray, " level"]
    table: Int[np.ndarray, "row atom"]
    generators: Int[np.ndarray, "generator atom"]

    @property
    def starts(self) -> Int[np.ndarray, " level"]:
        return np.cumsum(self.sizes) - self.sizes


@functools.lru_cache(maxsize=32)
def _chain_of(atomic_numbers: tuple[int, ...], near: Near) -> _Chain:
    num = len(atomic_numbers)
    colors, bases = _refine(np.array(atomic_numbers), near), []
    while len(several := np.flatnonzero(np.bincount(colors)[colors] > 1)):
        bases.append((int(several[0]), colors))
        fixed = 2 * colors + 1
        fixed[several[0]] -= 1
        colors = _refine(fixed, near)
    levels, generators, size = [(0, np.arange(num)[None])], [], 0
    for base, colors in reversed(bases):  # generators of later levels fix the base
        rows = {base: np.arange(num)}
        _close(rows, generators)
        for atom in np.flatnonzero(colors == colors[base]).tolist():
            found = None if atom in rows else _automorphism(colors, near, base, atom)
            if found is not None:
                generators.append(found)
                _close(rows, generators)
        size += 8 * num * len(rows)
        check_memory("The automorphisms", size, "take fewer molecules")
        levels.append((base, np.array(list(rows.values()))))
    levels = [each for each in reversed(levels) if len(each[1]) > 1] or levels
    return _Chain(
        bases=np.array([base for base, _ in levels]),
        sizes=np.array([len(rows) for _, rows in levels]),
        table=np.concatenate([rows for _, rows in levels]),
        generators=np.array(generators, int).reshape(-1, num),
    )


def _refine(colors: np.ndarray, near: Near) -> np.ndarray:
    """Return the coarsest finer colors of which equals have equal neighbors."""
    most, num = max(map(len, near)), 0
    padded = np.array([[*each, *[-1] * (most - len(each))] for each in near], int)
    while True:
        around = np.sort(np.append(colors, -1)[padded], axis=1)
        rows = np.column_stack([colors, around])
        colors = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
        if colors.max() + 1 == num:
            return colors
        num = colors.max() + 1


def _close(rows: dict[int, np.ndarray], generators: list[np.ndarray]) -> None:
    """Add a product of generators for each atom that these take the base to."""
    waiting, table = list(rows), np.array(generators)
    while waiting and generators:
        atom = waiting.pop()
        images, first = np.unique(table[:, atom], return_index=True)
        for image, which in zip(images.tolist(), first, strict=True):
            if image not in rows:
                rows[image] = table[which][rows[atom]]
                waiting.append(image)


def _automorphism(
    colors: np.ndarray, near: Near, base: int, goal: int
) -> np.ndarray | None:
    """Return a permutation with `p[base] == goal` that keeps colors and bonds."""
    order = _order(near, base)
    kinds, linked = colors.tolist(), [set(each) for each in near]
    images: dict[int, int] = {}

    def choices(atom: int, parent: int | None) -> Iterator[int]:
        if parent is not None:
            yield from near[images[parent]]
        else:  # of another molecule, preferably itself
            yield atom
            yield from np.flatnonzero(colors == colors[atom]).tolist()

    taken: set[int] = set()
    tried = [iter([goal])]
    while tried:
        atom = order[len(tried) - 1][0]
        taken.discard(images.pop(atom, -1))
        placed = [other for other in near[atom] if other in images]
        for image in tried[-1]:
            if image in taken or kinds[image] != kinds[atom]:
                continue
            if all(images[other] in linked[image] for other in placed):
                images[atom] = image
                taken.add(image)
                break
        else:
            tried.pop()
            continue
        if len(images) == len(order):
            return np.array([images[i] for i in range(len(order))])
        tried.append(choices(*order[len(tried)]))
    return None


def _order(near: Near, base: int) -> list[tuple[int, int | None]]:
    """Return all atoms, each after a neighbor, if one came before, and that one."""
    parents: dict[int, int | None] = {}  # in order
    for root in (base, *range(len(near))):
        waiting: list[tuple[int, int | None]] = [(root, None)]
        for atom, parent in waiting:
            if atom not in parents:
                parents[atom] = parent
                waiting += [(other, atom) for other in near[atom]]
    return list(parents.items())
