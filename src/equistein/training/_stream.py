"""Points that a user's iterable gives."""

from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from equistein._sharding import on_all
from equistein._types import Particles
from equistein.energies import AbstractEnergies
from equistein.training._batch import Labels
from equistein.training._labels import as_labels, check_known_classes
from equistein.training._source import AbstractSource, float_type


class Stream(AbstractSource):
    """Arrays of points, one after another, of which each epoch takes what it needs.

    A fit that goes on passes over what it had taken before, so the iterable must give
    the same again.

    Args:
        arrays: An iterable of arrays of points, or of pairs of points and labels, of
            any number each. One that can begin again does so at its end.
        least: The number of points to look at before the first epoch; it has them too.

    Raises:
        ValueError: If what it gives are not finite points, alike, and enough.
    """

    def __init__(self, arrays: Iterable[Any], least: int):
        self._arrays, self._iterator = arrays, iter(arrays)
        self._points: list[np.ndarray] = []
        self._labels: list[np.ndarray] = []
        self._like: tuple = ()
        self._num_given = self._num_epochs = 0
        self._project: Any = None
        self._num_classes: int | None = None
        points, labels = self._take(least)
        self._put_back(points, labels)
        self.data, self.labels = jnp.asarray(points), as_labels(labels, points)

    def onto(self, energy: AbstractEnergies, mesh: Mesh | None) -> "Stream":
        """Give points on an energy's subspace, on the devices of a mesh."""
        group = energy.group(self.data.shape[1:])
        self._project, self.mesh = jax.jit(jax.vmap(group.project)), mesh
        self._num_classes = energy.num_classes(self.data.shape[1:])
        return self

    def epoch(self, number: int, num: int) -> tuple[Particles, Labels]:
        while self._num_epochs < number:
            self._take(num)
            self._num_epochs += 1
        points, labels = self._take(num)
        self._num_epochs += 1
        found = self._project(jnp.asarray(points)), as_labels(labels, points)
        return found if self.mesh is None else on_all(found, self.mesh)

    def _take(self, num: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the next points; what else the last array has comes after them."""
        while sum(map(len, self._points)) < num:
            points, labels = self._read()
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

    def _read(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the next array and its labels, checked."""
        given = next(self._iterator, None)
        if given is None and self._iterator is not self._arrays and self._num_given:
            self._iterator = iter(self._arrays)
            given = next(self._iterator, None)
        if given is None:
            raise ValueError(
                f"`data` ended after {self._num_given} points, and the fit needs more: "
                "give an iterator that does not end, or an iterable that can begin "
                "again, such as a data loader."
            )
        parts = given if isinstance(given, tuple | list) else (given,)
        said = f"`data` gave, after {self._num_given} points,"
        if len(parts) not in (1, 2):
            raise ValueError(
                f"{said} {len(parts)} arrays together, but must give points, or points "
                "and labels."
            )
        points, labels = np.asarray(parts[0]), (*parts, None)[1]
        if points.ndim < 2 or not np.issubdtype(points.dtype, np.floating):
            raise ValueError(
                f"{said} an array of shape {points.shape} and type {points.dtype}, but "
                "must give floating point of shape (n, *shape)."
            )
        like = points.shape[1:], labels is not None
        self._like = self._like or like
        if like != self._like:
            named = [f"shape {shape}, labels: {known}" for shape, known in
                     (like, self._like)]  # fmt: skip
            raise ValueError(f"{said} points of {named[0]}; those before: {named[1]}.")
        with np.errstate(over="ignore"):
            points = points.astype(float_type(), copy=False)
        if not np.all(np.isfinite(points)):
            raise ValueError(f"{said} points that are not finite.")
        labels = None if labels is None else np.asarray(labels)
        as_labels(labels, points)
        check_known_classes(labels, self._num_classes, said)
        self._num_given += len(points)
        return points, labels
