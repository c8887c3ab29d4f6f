"""Data on disk, of which no more is read than an epoch needs."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein._types import Key, Particles
from equistein.energies import AbstractEnergies
from equistein.training._batch import Labels

_SEEN = 8_192  # points that checks and starts look at
_CHUNK = 2**24  # numbers read at a time


@dataclasses.dataclass
class Stream:
    """The points of each epoch, from an array on disk.

    All are read once, in random order, before any is read again; the order depends on
    the key alone, so that a fit that goes on reads what is left.

    Args:
        data: The array, `np.load(path, mmap_mode="r")`.
        labels: The class or the known energy of each point, or None.
        num: The number of points of an epoch.
        key: The source of the order.
        energy: The energy, on whose subspace the points are put.
    """

    data: np.memmap
    labels: Labels
    num: int
    key: Key
    energy: AbstractEnergies

    def __post_init__(self):
        group = self.energy.group(self.data.shape[1:])
        self._project = jax.jit(jax.vmap(group.project))
        self._orders: dict[int, np.ndarray] = {}

    def epoch(self, number: int) -> tuple[Particles, Labels]:
        """Return the points and labels of an epoch, by its number from 0."""
        rows = np.sort(self.rows(number))  # a disk is read forwards
        labels = None if self.labels is None else self.labels[rows]
        return self._project(jnp.asarray(self.data[rows], float)), labels

    def rows(self, number: int) -> np.ndarray:
        """Return which points an epoch has."""
        places = np.arange(number * self.num, (number + 1) * self.num)
        turns, places = np.divmod(places, len(self.data))
        each = [(turn, places[turns == turn]) for turn in np.unique(turns).tolist()]
        return np.concatenate([self._order(turn)[places] for turn, places in each])

    def _order(self, turn: int) -> np.ndarray:
        """Return the order of all points the next time round."""
        if turn not in self._orders:
            seed = [*np.asarray(jr.key_data(self.key)).ravel().tolist(), turn]
            order = np.random.default_rng(seed).permutation(len(self.data))
            self._orders = {turn: order}  # of the others none is needed again
        return self._orders[turn]


def first_points(data: np.memmap, batch_size: int) -> Float[Array, "datum *shape"]:
    """Return some points of an array on disk, all of which is checked.

    Raises:
        ValueError: If it is no array of finite points.
    """
    if data.ndim < 2 or not len(data) or not np.issubdtype(data.dtype, np.floating):
        raise ValueError(
            "`data` on disk must be floating point of shape (n, *shape), but has shape "
            f"{data.shape} and type {data.dtype}."
        )
    rows = max(1, _CHUNK // max(1, data[0].size))
    for start in range(0, len(data), rows):
        finite = np.isfinite(data[start : start + rows])
        bad = ~np.all(finite, axis=tuple(range(1, data.ndim)))
        if np.any(bad):
            raise ValueError(
                "`data` must be finite, but on disk the point at index "
                f"{start + int(np.argmax(bad))} is not."
            )
    return jnp.asarray(data[: max(_SEEN, batch_size)], float)


def labels_of(labels: Any, num: int) -> Any:
    """Return the labels of the first points."""
    return None if labels is None else np.asarray(labels)[:num]
