"""The data of a linear fit, in blocks."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.random as jr
import numpy as np

from equistein._arrays import as_keys, check_particles
from equistein.energies import Rows

_BLOCK = 8_192  # points that are read together
_COPIES = 8  # of each point, with other noise
_SOME = 1_000
_ROUNDS = 500  # of the biases


class LinearData:
    """The rows of a fit, a block at a time, as often as they are asked for."""

    def __init__(self, group: Any, data: Any, noise: Any, num_folds: int, key: Any):
        self._group, self._noise, self._num_folds = group, noise, num_folds
        self._seed = np.asarray(jr.key_data(as_keys(key))).ravel().tolist()
        self._is_array = hasattr(data, "__array__")
        self._parts: dict[str, Any] = {}
        self.add(data=data)
        first = next(iter(self._parts["data"]), np.zeros(0))
        self.some = self._checked(first[:: max(1, len(first) // _SOME)])
        self.num_classes = None

    def add(self, **parts: Any) -> None:
        """Add what is known of each point."""
        for name, part in parts.items():
            if part is not None and self._is_array:
                part = part if isinstance(part, np.memmap) else np.asarray(part)
                part = [part[i : i + _BLOCK] for i in range(0, len(part), _BLOCK)]
            elif part is not None and iter(part) is part:
                raise ValueError(f"`{name}` are read several times: give a list.")
            if part is not None:
                self._parts[name] = part
        if parts.get("labels") is not None:
            known = np.unique(np.concatenate([*map(np.asarray, self._parts["labels"])]))
            if known.dtype.kind not in "iu" or list(known) != [*range(len(known))]:
                raise ValueError(f"`labels` must be whole, from 0 on, not {known[:9]}.")
            self.num_classes = len(known)

    def _checked(self, points: Any) -> np.ndarray:
        """Return finite points in double precision, on the group's subspace."""
        points = np.asarray(points, np.float64)
        check_particles(points, "data")
        return self._projected(points)

    def _projected(self, rows: Any) -> np.ndarray:
        with jax.enable_x64(True):
            rows = np.asarray(rows, np.float64)
            return np.asarray(self._group(rows.shape[1:]).project_points(rows))

    def rows(self, label: int | None) -> Iterator[tuple[int, Rows]]:
        """Yield the rows of a class, or all, each with its fold."""
        drawn, begin = np.random.default_rng(self._seed), 0
        for parts in zip(*self._parts.values(), strict=True):
            known = dict(zip(self._parts, map(np.asarray, parts), strict=True))
            points, forces = self._checked(known["data"]), known.get("forces")
            weights = known.get("weights", np.ones(len(points))).astype(float)
            shapes = {name: part.shape for name, part in known.items()}
            good = (weights >= 0) & np.isfinite(weights)
            if (
                len({shape[0] for shape in shapes.values()} | {weights.size}) > 1
                or (forces is not None and forces.shape != points.shape)
                or not good.all()
            ):
                raise ValueError(
                    "`fit_linear` needs a label and a weight from 0 on for each point, "
                    f"finite, and forces like the points, but got shapes {shapes}."
                )
            forces = None if forces is None else self._projected(forces)
            rows = Rows(points, forces, weights)
            folds = (drawn.permutation(len(points)) + begin) % self._num_folds
            begin += len(points)
            for fold in range(self._num_folds):
                chosen = folds == fold
                if label is not None:
                    chosen &= known["labels"] == label
                if chosen.any():
                    part = rows[chosen]
                    yield fold, part if not self._noise else self._blurred(drawn, part)

    def biases(self, features: Any, rows: np.ndarray) -> np.ndarray | None:
        """Return b, by which softmax(b - c F) fits labels best; None without them."""
        if self.num_classes is None:
            return None
        columns: list[Any] = []
        for label in range(len(rows)):
            for _, part in self.rows(label):
                energies = features.in_double(part.points) @ rows.T
                columns.append((energies, part.weights, np.full(len(part), label)))
        values, weights, labels = map(np.concatenate, zip(*columns, strict=True))
        counts = np.bincount(labels, weights)
        own = np.bincount(labels, weights * values[np.arange(len(labels)), labels])
        biases = np.log(counts) + own / counts
        for _ in range(_ROUNDS):
            logits = biases - values
            shares = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
            expected = np.logaddexp.reduce(shares + np.log(weights)[:, None], axis=0)
            biases += np.log(counts) - expected
        return biases

    def _blurred(self, drawn: np.random.Generator, rows: Rows) -> Rows:
        """Return copies of rows with noise, and the scores of the noise as forces."""
        noise = drawn.normal(size=(len(rows), _COPIES // 2, *rows.points.shape[1:]))
        noise = np.concatenate([noise, -noise], axis=1)
        noise = self._checked(noise.reshape(-1, *rows.points.shape[1:]))
        points = np.repeat(rows.points, _COPIES, axis=0) + self._noise * noise
        weights = np.repeat(rows.weights / _COPIES, _COPIES)
        return Rows(points, -noise / self._noise, weights, _COPIES)
