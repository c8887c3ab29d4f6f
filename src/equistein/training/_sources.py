"""The data of a fit: in memory, on disk, or from an iterable."""

import abc
import concurrent.futures
import pathlib
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Int

from equistein._arrays import check_particles
from equistein._gate import gate
from equistein._types import Key, Particles
from equistein.energies import AbstractEnergies
from equistein.training._batch import Batch, Labels
from equistein.training._fingerprint import fingerprint
from equistein.training._labels import as_labels, check_known_classes

SEEN = 8_192  # points of an array on disk that checks and initial particles use
_CHUNK = 2**24  # numbers read at a time
Place = Callable[[Any], Any]


class AbstractSource(abc.ABC):
    """Where the points of each epoch come from.

    `fit` makes one of arrays and iterables; made by hand it also sets the number of
    batches in an epoch.

    Attributes:
        epoch_batches: Batches an epoch; None is one pass over the data.
    """

    epoch_batches: int | None = None

    @abc.abstractmethod
    def preview(self, batch_size: int) -> tuple[Any, Any]:
        """Return points, and their labels, to check before the first epoch."""

    @abc.abstractmethod
    def num_batches(self, batch_size: int) -> int:
        """Return the number of batches of an epoch."""

    @abc.abstractmethod
    def open(
        self, energy: AbstractEnergies, checked: Batch, num: int, key: Key, place: Place
    ) -> None:
        """Prepare to give the points of epochs.

        Args:
            energy: The energy, on whose subspace the points are put.
            checked: The points of `preview`, checked and on that subspace.
            num: The number of points that an epoch's batches have.
            key: The source of their order.
            place: What puts arrays onto the devices.
        """

    @abc.abstractmethod
    def epoch(self, number: int) -> tuple[Particles, Labels]:
        """Return the points, and labels, that an epoch makes its batches of.

        Args:
            number: How many epochs were asked for before, failed ones included.
        """

    @abc.abstractmethod
    def fingerprint(self) -> list:
        """Return JSON that differs for other data or labels."""


@gate
class InMemory(AbstractSource):
    """Arrays in memory, all of which every epoch has.

    Args:
        data: The points, stacked on axis 0.
        labels: As for `fit`.
        epoch_batches: Batches an epoch; None is one pass over the data.
    """

    def __init__(self, data: Any, labels: Any = None, epoch_batches: int | None = None):
        self._data = check_particles(data, "data")
        self._labels = as_labels(labels, self._data)
        self.epoch_batches = epoch_batches

    def preview(self, batch_size: int) -> tuple[Any, Any]:
        return self._data, self._labels

    def num_batches(self, batch_size: int) -> int:
        one_pass = max(1, len(self._data) // batch_size)
        return one_pass if self.epoch_batches is None else self.epoch_batches

    def open(
        self, energy: AbstractEnergies, checked: Batch, num: int, key: Key, place: Place
    ) -> None:
        self._placed = place((checked.points, checked.labels))

    def epoch(self, number: int) -> tuple[Particles, Labels]:
        return self._placed

    def fingerprint(self) -> list:
        return [fingerprint(self._data), _fingerprint_of(self._labels)]


@gate
class OnDisk(AbstractSource):
    """An array on disk, of which an epoch reads only its points.

    All points are read once, in random order, before any is read again; the order
    depends on the key alone, so a resumed fit reads the rest. The next epoch is read
    while one is computed.

    Args:
        data: The array, such as `np.load(path, mmap_mode="r")`.
        labels: As for `fit`.
        epoch_batches: Batches an epoch; None is one pass over the data.

    Raises:
        ValueError: If it is no array of finite points.
    """

    def __init__(
        self, data: np.memmap, labels: Any = None, epoch_batches: int | None = None
    ):
        check_on_disk(data)
        self._data, self._labels = data, as_labels(labels, data)
        self.epoch_batches = epoch_batches
        self._orders: dict[int, np.ndarray] = {}
        self._reader = concurrent.futures.ThreadPoolExecutor(1)
        self._ahead: dict[int, concurrent.futures.Future] = {}

    def preview(self, batch_size: int) -> tuple[Any, Any]:
        rows = spread_rows(len(self._data), max(SEEN, batch_size))
        labels = None if self._labels is None else self._labels[rows]
        return jnp.asarray(self._data[rows], float), labels

    def num_batches(self, batch_size: int) -> int:
        one_pass = max(1, len(self._data) // batch_size)
        return one_pass if self.epoch_batches is None else self.epoch_batches

    def open(
        self, energy: AbstractEnergies, checked: Batch, num: int, key: Key, place: Place
    ) -> None:
        shape = self._data.shape[1:]
        check_known_classes(self._labels, energy.num_classes(shape), "`labels` hold")
        self._seed = np.asarray(jr.key_data(key)).ravel().tolist()
        self._project, self._num = jax.jit(jax.vmap(energy.group(shape).project)), num
        self._place = place

    def epoch(self, number: int) -> tuple[Particles, Labels]:
        pending = self._ahead.pop(number, None)
        rows, values = (pending or self._reader.submit(self._read, number)).result()
        self._ahead = {number + 1: self._reader.submit(self._read, number + 1)}
        labels = None if self._labels is None else self._labels[rows]
        return self._place((self._project(jnp.asarray(values)), labels))

    def _read(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        rows = np.sort(self.rows(number))  # a disk is read forwards
        return rows, np.asarray(self._data[rows], float_type())

    def rows(self, number: int) -> np.ndarray:
        """Return which points an epoch has."""
        places = np.arange(number * self._num, (number + 1) * self._num)
        passes, places = np.divmod(places, len(self._data))
        return np.concatenate(
            [self._order(i)[places[passes == i]] for i in np.unique(passes).tolist()]
        )

    def _order(self, index: int) -> np.ndarray:
        """Return the order of all points in one pass over them."""
        if index not in self._orders:
            generator = np.random.default_rng([*self._seed, index])
            self._orders = {index: generator.permutation(len(self._data))}
        return self._orders[index]

    def fingerprint(self) -> list:
        return [fingerprint(self._data), _fingerprint_of(self._labels)]


@gate
class Stream(AbstractSource):
    """Arrays of points from an iterable, of which each epoch takes what it needs.

    A resumed fit skips what it had taken before, so the iterable must give the same
    again.

    Args:
        arrays: An iterable of arrays of points, or of pairs of points and labels, of
            any number each. One that can begin again does so at its end.
        epoch_batches: Batches an epoch.

    Raises:
        ValueError: If it gives no finite points of one shape, or too few.
    """

    def __init__(self, arrays: Iterable[Any], epoch_batches: int):
        self._arrays, self._iterator = arrays, iter(arrays)
        self._points: list[np.ndarray] = []
        self._labels: list[np.ndarray] = []
        self._like: tuple = ()
        self._num_taken = self._num_epochs = 0
        self._num_classes: int | None = None
        self.epoch_batches = epoch_batches

    def preview(self, batch_size: int) -> tuple[Any, Any]:
        num = min(max(SEEN, batch_size), self.num_batches(batch_size) * batch_size)
        points, labels = self._take(num)
        self._put_back(points, labels)
        self._preview = jnp.asarray(points), as_labels(labels, points)
        return self._preview

    def num_batches(self, batch_size: int) -> int:
        assert self.epoch_batches is not None
        return self.epoch_batches

    def open(
        self, energy: AbstractEnergies, checked: Batch, num: int, key: Key, place: Place
    ) -> None:
        shape = checked.points.shape[1:]
        self._project, self._num = jax.jit(jax.vmap(energy.group(shape).project)), num
        self._place = place
        self._num_classes = energy.num_classes(shape)

    def epoch(self, number: int) -> tuple[Particles, Labels]:
        while self._num_epochs < number:
            self._take(self._num)
            self._num_epochs += 1
        points, labels = self._take(self._num)
        self._num_epochs += 1
        labels = as_labels(labels, points)
        return self._place((self._project(jnp.asarray(points)), labels))

    def _take(self, num: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the next points; the rest of the last array comes after them."""
        while sum(map(len, self._points)) < num:
            points, labels = self._checked(self._next())
            self._points.append(points)
            self._labels += [] if labels is None else [labels]
        points = np.concatenate(self._points)
        labels = np.concatenate(self._labels) if self._labels else None
        self._points, self._labels = [], []
        self._put_back(points[num:], None if labels is None else labels[num:])
        return points[:num], None if labels is None else labels[:num]

    def _put_back(self, points: np.ndarray, labels: np.ndarray | None) -> None:
        self._points.insert(0, points)
        self._labels[:0] = [] if labels is None else [labels]

    def _next(self) -> Any:
        """Return what the iterable gives next, beginning again at its end."""
        item = next(self._iterator, None)
        if item is None and self._iterator is not self._arrays and self._num_taken:
            self._iterator = iter(self._arrays)
            item = next(self._iterator, None)
        if item is None:
            raise ValueError(
                f"`data` ended after {self._num_taken} points, and the fit needs more: "
                "give an iterator that does not end, or an iterable that can begin "
                "again, such as a data loader."
            )
        return item

    def _checked(self, item: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the points and labels of one item."""
        parts = item if isinstance(item, tuple | list) else (item,)
        where = f"`data` gave, after {self._num_taken} points,"
        if len(parts) not in (1, 2):
            raise ValueError(
                f"{where} {len(parts)} arrays together, but must give points, or "
                "points and labels."
            )
        points, labels = np.asarray(parts[0]), (*parts, None)[1]
        like = points.shape[1:], labels is not None
        self._like = self._like or like
        if points.ndim < 2 or points.dtype.kind != "f" or like != self._like:
            raise ValueError(
                f"{where} an array of shape {points.shape} and type {points.dtype}, "
                f"labels: {labels is not None}, but must give floating point of shape "
                f"(n, *shape), the same shape each time, with labels always or never."
            )
        with np.errstate(over="ignore"):
            points = points.astype(float_type(), copy=False)
        if not np.all(np.isfinite(points)):
            raise ValueError(f"{where} points that are not finite.")
        labels = None if labels is None else np.asarray(labels)
        as_labels(labels, points)
        check_known_classes(labels, self._num_classes, where)
        self._num_taken += len(points)
        return points, labels

    def fingerprint(self) -> list:
        return [fingerprint(self._preview[0]), _fingerprint_of(self._preview[1])]


def as_source(data: Any, labels: Any) -> AbstractSource:
    """Return the source of an array, a memory map or an iterable.

    Raises:
        ValueError: If it is none of them.
    """
    if isinstance(data, AbstractSource):
        if labels is not None:
            raise ValueError("`labels` belong into the source, InMemory(data, labels).")
        return data
    if isinstance(data, str | pathlib.Path):
        raise ValueError(
            f"`data` must be an array, but got the path {str(data)!r}: give "
            "es.data.map_points(path), which leaves it on disk."
        )
    if isinstance(data, np.memmap):
        return OnDisk(data, labels)
    is_array = hasattr(data, "__array__") or isinstance(data, list | tuple)
    if is_array or not isinstance(data, Iterable):
        return InMemory(data, labels)
    raise ValueError(
        "`data` from an iterable needs the number of batches of an epoch: give "
        "es.training.Stream(data, epoch_batches=100). It gives labels itself, as pairs "
        "of points and labels."
    )


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


def _fingerprint_of(labels: Any) -> list | None:
    return None if labels is None else fingerprint(labels)
