"""The data of a fit: batches, labels, and where they come from."""

import abc
import concurrent.futures
import pathlib
from collections.abc import Iterable, Iterator
from typing import Any

import jax
import jax.random as jr
import numpy as np
from jax.dtypes import canonicalize_dtype
from jaxtyping import Array, Float, Int

from equistein._arrays import check_particles, on_device
from equistein._check_arguments import check_arguments
from equistein._numbers import check_integers
from equistein._types import Key, Scalar
from equistein.data import PREVIEW_SIZE, spread_rows
from equistein.energies import AbstractEnergy, check_labels, Evaluation
from equistein.training._checkpoint import identify

_CHUNK = 2**24  # numbers read at a time
Labels = Int[Array, " point"] | Float[Array, " point"] | None
PointsAndLabels = tuple[Any, Any]  # labels may be None


class Batch:
    """Data points, their labels, and their indices in the epoch.

    The energies of the points are computed once and shared by the objectives; a batch
    of an epoch is used within one trace only.

    Args:
        labels: The class or the known energy of each, or None.
        rows: Their indices among the points of the epoch; in memory, among all data.
        step_scale: What multiplies a sampler's step sizes: 1, halved by each roll-back.
    """

    def __init__(
        self,
        points: Float[Array, "point *shape"],
        labels: Labels,
        rows: Int[Array, " point"],
        step_scale: Scalar | float = 1.0,
    ):
        self.points, self.labels, self.rows = points, labels, rows
        self.step_scale = step_scale
        self._evaluated: list[tuple[AbstractEnergy, Evaluation]] = []

    def evaluate(self, energy: AbstractEnergy) -> Evaluation:
        """Return an energy at all points, computed once for each energy."""
        for earlier, evaluation in self._evaluated:
            if earlier is energy:
                return evaluation
        evaluation = jax.vmap(energy.evaluate)(self.points)
        self._evaluated.append((energy, evaluation))
        return evaluation


def as_labels(labels: Any, data: Float[Array, "datum *shape"] | np.ndarray) -> Labels:
    """Return labels as an array of classes or of known energies, one per data point."""
    if labels is None:
        return None
    values = np.asarray(labels)
    if values.shape != (len(data),):
        raise ValueError(
            f"`labels` must be one number for each of the {len(data)} data points, but "
            f"have shape {values.shape}."
        )
    if np.issubdtype(values.dtype, np.floating):
        return on_device(values.astype(canonicalize_dtype(data.dtype)))
    if np.issubdtype(values.dtype, np.integer):
        return on_device(values.astype(np.int32))
    raise ValueError(
        "`labels` must be classes (integers) or known energies (floating point), but "
        f"are {values.dtype}."
    )


@check_arguments
def check_classes(values: np.ndarray, num_classes: int | None = None) -> np.ndarray:
    """Return at least two classes, -1 for unknown, as integers; or raise `ValueError`.

    By default there is one more than the largest.
    """
    if not np.issubdtype(values.dtype, np.integer):
        raise ValueError(
            f"`labels` must be whole numbers, the classes, but are {values.dtype}: use "
            "labels.astype(int)."
        )
    values = values.astype(np.int64)
    num = num_classes or max(1, int(values.max(initial=-1)) + 1)
    check_labels("fit", values, num, unknown=True)
    kinds = np.unique(values[values >= 0])
    if not num_classes and 2 <= len(kinds) < num:
        raise ValueError(
            f"`labels` must number classes from 0 on, without gaps, but hold {kinds}: "
            "use np.unique(labels, return_inverse=True)[1]."
        )
    if len(kinds) < 2:
        raise ValueError(
            "`labels` must hold at least two classes, but hold "
            f"{'the class ' + str(kinds[0]) + ' alone' if len(kinds) else 'none'}. "
            "Fit one class without labels; -1 is unknown."
        )
    return values.astype(np.int32)


class AbstractSource(abc.ABC):
    """Where the points of each epoch come from."""

    epoch_batches: int | None = None  # which is one pass over the data
    _data: Any = ()  # all points and their labels; () if their number is not known
    _labels: Any = None

    @abc.abstractmethod
    def preview(self, batch_size: int) -> PointsAndLabels:
        """Return points and labels to check and to start with; in memory, all."""

    @abc.abstractmethod
    def epoch_points(self, number: int) -> PointsAndLabels:
        """Return the points, and labels, that an epoch makes its batches of.

        Epochs count from 0, those discarded or before a resume too: none comes twice.
        """

    def num_batches(self, batch_size: int) -> int:
        """Return the number of batches of an epoch."""
        one_pass = max(1, len(self._data) // batch_size)
        return one_pass if self.epoch_batches is None else self.epoch_batches

    def prepare(self, key: Key, epoch_size: int, num_classes: int | None) -> None:
        """Begin a fit; raise `ValueError` for a class that the energy has not."""
        self._key, self._num, self._num_classes = key, epoch_size, num_classes
        self._check_classes(self._labels)

    def fingerprint(self) -> Any:
        """Return JSON that identifies the data beyond the preview, or None."""
        return None

    def _check_classes(self, labels: Any) -> None:
        is_class = labels is not None and np.asarray(labels).dtype.kind in "iu"
        if self._num_classes and is_class:
            check_labels("fit", labels, self._num_classes, unknown=True)


@check_arguments
class InMemory(AbstractSource):
    """Arrays in memory, labels as for `fit`; every epoch gets all of them."""

    def __init__(self, data: Any, labels: Any = None, epoch_batches: int | None = None):
        self._data, self._labels = data, labels
        self.epoch_batches = epoch_batches

    def preview(self, batch_size: int) -> PointsAndLabels:
        return self._data, self._labels

    def epoch_points(self, number: int) -> PointsAndLabels:
        return self._data, self._labels


@check_arguments
class OnDisk(AbstractSource):
    """An array on disk; memory holds the points of at most two epochs.

    Every point is used once before any is used again; which points an epoch has is
    random and depends on the key alone, so a resumed fit takes the rest. The array is
    checked for numbers that are not finite when the source is made. If `epoch_batches`
    is None, all must fit into memory twice. Labels are as for `fit`.
    """

    def __init__(
        self, data: np.memmap, labels: Any = None, epoch_batches: int | None = None
    ):
        check_on_disk(data)
        self._data, self._labels = data, as_labels(labels, data)
        self.epoch_batches = epoch_batches
        self._reader = concurrent.futures.ThreadPoolExecutor(1)

    def prepare(self, key: Key, epoch_size: int, num_classes: int | None) -> None:
        super().prepare(key, epoch_size, num_classes)
        self._orders: dict[int, np.ndarray] = {}
        self._reading: dict[int, concurrent.futures.Future] = {}

    def preview(self, batch_size: int) -> PointsAndLabels:
        return self._at(spread_rows(len(self._data), max(PREVIEW_SIZE, batch_size)))

    def epoch_points(self, number: int) -> PointsAndLabels:
        pending = self._reading.pop(number, None) or self._read(number)
        self._reading = {number + 1: self._read(number + 1)}
        return pending.result()

    def fingerprint(self) -> Any:
        return identify([self._data, self._labels])

    def _read(self, number: int) -> concurrent.futures.Future:
        """Begin to read the points of an epoch, in their order on disk."""
        return self._reader.submit(
            lambda: self._at(np.sort(self.epoch_indices(number)))
        )

    def _at(self, rows: np.ndarray) -> PointsAndLabels:
        labels = None if self._labels is None else self._labels[rows]
        return np.asarray(self._data[rows], canonicalize_dtype(float)), labels

    def epoch_indices(self, number: int) -> np.ndarray:
        """Return which points an epoch has, in random order."""
        positions = np.arange(number * self._num, (number + 1) * self._num)
        passes, places = np.divmod(positions, len(self._data))
        own = lambda index: self._order(index)[places[passes == index]]
        return np.concatenate([own(i) for i in np.unique(passes).tolist()])

    def _order(self, index: int) -> np.ndarray:
        """Return the order of all points in one pass over them."""
        if index not in self._orders:
            seed = np.asarray(jr.key_data(self._key)).ravel().tolist()
            order = np.random.default_rng([*seed, index]).permutation(len(self._data))
            self._orders = {index: order}
        return self._orders[index]


@check_arguments
class Stream(AbstractSource):
    """Arrays of points from an iterable.

    Each epoch takes the next `epoch_batches * batch_size` points and shuffles them; the
    rest of an array opens the next epoch. A resumed fit skips what it had taken before,
    so the iterable must give the same again.

    Args:
        arrays: An iterable of arrays of points, or of pairs of points and labels, of
            any number each. One that can begin again does so at its end.
    """

    def __init__(self, arrays: Iterable[Any], epoch_batches: int):
        check_integers("Stream", epoch_batches=epoch_batches)
        self._items, self._left_over = _items(arrays), []
        self._num_epochs, self.epoch_batches = 0, epoch_batches

    def preview(self, batch_size: int) -> PointsAndLabels:
        num = self.num_batches(batch_size) * batch_size
        points = self._take(min(max(PREVIEW_SIZE, batch_size), num))
        self._left_over.insert(0, points)
        return points

    def epoch_points(self, number: int) -> PointsAndLabels:
        for _ in range(self._num_epochs, number):
            self._take(self._num)
        points, labels = self._take(self._num)
        self._num_epochs = number + 1
        self._check_classes(labels)
        return points, labels

    def _take(self, num: int) -> PointsAndLabels:
        """Return the next points; the rest of the last array comes after them."""
        while sum(len(points) for points, _ in self._left_over) < num:
            self._left_over.append(next(self._items))
        points = np.concatenate([points for points, _ in self._left_over])
        known = [labels for _, labels in self._left_over if labels is not None]
        labels = np.concatenate(known) if known else None
        part = lambda rows: (points[rows], None if labels is None else labels[rows])
        self._left_over = [part(slice(num, None))]
        return part(slice(num))


def _items(arrays: Iterable[Any]) -> Iterator[PointsAndLabels]:
    """Yield checked points and labels, beginning again at the end."""
    taken, before, like = 0, -1, None
    while taken > before:  # again, if the last pass gave anything
        before = taken
        for item in arrays:
            parts = item if isinstance(item, tuple | list) else (item,)
            points, labels = np.asarray(parts[0]), (*parts, None)[1]
            form = (points.shape[1:], len(parts))
            like = like or form
            if form != like or len(parts) > 2:
                raise ValueError(
                    f"`data` gave, after {taken} points, {len(parts)} arrays together, "
                    f"the first of shape {points.shape}, but must give points of one "
                    "shape, with labels always or never."
                )
            points = _finite(points, f"data after {taken} points")
            as_labels(labels, points)
            yield points, None if labels is None else np.asarray(labels)
            taken += len(points)
    raise ValueError(
        f"`data` ended after {taken} points, and the fit needs more: give an iterator "
        "that does not end, or an iterable that can begin again, such as a data loader."
    )


def as_source(data: Any, labels: Any) -> AbstractSource:
    """Return data as a source, or raise `ValueError`."""
    if isinstance(data, AbstractSource):
        if labels is not None:
            raise ValueError("`data` is a source: give it the `labels`, not `fit`.")
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
        "es.training.Stream(data, epoch_batches=100), of pairs (points, labels) too."
    )


@check_arguments
def check_on_disk(data: np.memmap, name: str = "data") -> None:
    """Raise `ValueError` unless an array on disk holds finite points."""
    rows = max(1, _CHUNK // max(1, data[:1].size))
    for start in range(0, max(1, len(data)), rows):
        _finite(data[start : start + rows], f"{name} from row {start} on")


def _finite(points: np.ndarray, name: str) -> np.ndarray:
    """Return points in JAX's type of floating point; or raise `ValueError`."""
    with np.errstate(over="ignore"):
        return np.asarray(check_particles(points, name))
