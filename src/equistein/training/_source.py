"""Where the points of each epoch come from: memory, or an array on disk."""

import abc
import concurrent.futures
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Int

from equistein._gate import gate
from equistein._sharding import on_all
from equistein._types import Key, Particles
from equistein.energies import AbstractEnergies
from equistein.training._batch import Batch, Labels

SEEN = 8_192  # points of an array on disk that checks and starts look at
_CHUNK = 2**24  # numbers read at a time


class AbstractSource(abc.ABC):
    """The data of a fit.

    Attributes:
        data: All of it, to tell it from other data.
        labels: The class or the known energy of each point, or None.
        mesh: The devices that have an epoch's points, or None.
    """

    data: Any
    labels: Labels
    mesh: Mesh | None = None

    @abc.abstractmethod
    def epoch(self, number: int, num: int) -> tuple[Particles, Labels]:
        """Return points, and their labels, for an epoch to make its batches of.

        Args:
            number: How many epochs were asked for before, those included that a fit
                that went back does not count.
            num: The points of all of its batches.

        Raises:
            ValueError: If there are not as many.
        """


class InMemory(AbstractSource):
    """Data in memory: all of it in every epoch.

    Args:
        everything: The points and their labels.
        mesh: The devices that have them, or None.
    """

    def __init__(self, everything: Batch, mesh: Mesh | None):
        self.data, self.labels, self.mesh = everything.points, everything.labels, mesh
        self._placed = _placed((self.data, self.labels), mesh)

    def epoch(self, number: int, num: int) -> tuple[Particles, Labels]:
        return self._placed


class OnDisk(AbstractSource):
    """An array on disk, of which no more is read than an epoch needs.

    All points are read once, in random order, before any is read again; the order
    depends on the key alone, so that a fit that goes on reads what is left. The next
    epoch is read while one is computed.

    Args:
        data: The array, `np.load(path, mmap_mode="r")`.
        labels: The class or the known energy of each point, or None.
        key: The source of the order.
        energy: The energy, on whose subspace the points are put.
        mesh: The devices that have an epoch's points, or None.
    """

    def __init__(
        self,
        data: np.memmap,
        labels: Labels,
        key: Key,
        energy: AbstractEnergies,
        mesh: Mesh | None = None,
    ):
        self.data, self.labels, self.mesh = data, labels, mesh
        self._seed = np.asarray(jr.key_data(key)).ravel().tolist()
        self._project = jax.jit(jax.vmap(energy.group(data.shape[1:]).project))
        self._orders: dict[int, np.ndarray] = {}
        self._reader = concurrent.futures.ThreadPoolExecutor(1)
        self._ahead: dict[tuple[int, int], concurrent.futures.Future] = {}

    def epoch(self, number: int, num: int) -> tuple[Particles, Labels]:
        asked = number, num
        read = self._ahead.pop(asked, None) or self._reader.submit(self._read, *asked)
        rows, values = read.result()
        self._ahead = {
            (number + 1, num): self._reader.submit(self._read, number + 1, num)
        }
        labels = None if self.labels is None else self.labels[rows]
        return _placed((self._project(jnp.asarray(values)), labels), self.mesh)

    def _read(self, number: int, num: int) -> tuple[np.ndarray, np.ndarray]:
        """Return which points an epoch has, and the points."""
        rows = np.sort(self.rows(number, num))  # a disk is read forwards
        return rows, np.asarray(self.data[rows], float_type())

    def rows(self, number: int, num: int) -> np.ndarray:
        """Return which points an epoch has."""
        turns, places = np.divmod(np.arange(number * num, (number + 1) * num), self.num)
        each = [(turn, places[turns == turn]) for turn in np.unique(turns).tolist()]
        return np.concatenate([self._order(turn)[places] for turn, places in each])

    @property
    def num(self) -> int:
        """The number of all points."""
        return len(self.data)

    def _order(self, turn: int) -> np.ndarray:
        """Return the order of all points the next time round."""
        if turn not in self._orders:
            order = np.random.default_rng([*self._seed, turn]).permutation(self.num)
            self._orders = {turn: order}  # of the others none is needed again
        return self._orders[turn]


@gate
def check_on_disk(data: np.memmap, name: str = "`data`") -> None:
    """Look through an array on disk, a piece at a time.

    Raises:
        ValueError: If it is no array of finite points.
    """
    if data.ndim < 2 or not len(data) or not np.issubdtype(data.dtype, np.floating):
        raise ValueError(
            f"{name} on disk must be floating point of shape (n, *shape), but has "
            f"shape {data.shape} and type {data.dtype}."
        )
    rows = max(1, _CHUNK // max(1, data[0].size))
    for start in range(0, len(data), rows):
        with np.errstate(over="ignore"):
            part = np.asarray(data[start : start + rows], float_type())
        finite = np.isfinite(part)
        bad = ~np.all(finite, axis=tuple(range(1, data.ndim)))
        if np.any(bad):
            raise ValueError(
                f"{name} must be finite, but on disk the point at index "
                f"{start + int(np.argmax(bad))} is not."
            )


def spread_rows(num: int, wanted: int) -> Int[np.ndarray, " row"]:
    """Return at most as many rows as wanted, evenly over all."""
    return np.unique(np.linspace(0, num - 1, min(num, wanted)).astype(int))


def float_type() -> np.dtype:
    """Return the floating-point type of JAX's arrays: double with x64 only."""
    return np.dtype(jnp.zeros(()).dtype)


def _placed(tree: Any, mesh: Mesh | None) -> Any:
    return tree if mesh is None else on_all(tree, mesh)
