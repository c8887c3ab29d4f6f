"""Data points with what is known of them, and its checks."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from equistein._gate import gate
from equistein._types import Scalar
from equistein.energies import AbstractEnergy, Evaluation

Labels = Int[Array, " point"] | Float[Array, " point"] | None


class Batch:
    """Data points, their labels, and their indices in the data.

    The energies of the points are computed once and shared by the objectives. A batch
    lives within one trace; it is no pytree.

    Args:
        points: The points, stacked on axis 0.
        labels: The class or the known energy of each, or None.
        rows: Their indices in the data.
        step_scale: What multiplies a sampler's step sizes, after roll-backs.
    """

    def __init__(
        self,
        points: Float[Array, "point *shape"],
        labels: Labels,
        rows: Int[Array, " point"],
        step_scale: Scalar | float = 1.0,
    ):
        self.points, self.labels, self.rows = points, labels, rows
        self.step_scale = jnp.asarray(step_scale, points.dtype)
        self._evaluated: list[tuple[AbstractEnergy, Evaluation]] = []

    def evaluate(self, energy: AbstractEnergy) -> Evaluation:
        """Return an energy at all points."""
        for earlier, evaluation in self._evaluated:
            if earlier is energy:
                return evaluation
        evaluation = jax.vmap(energy.evaluate)(self.points)
        self._evaluated.append((energy, evaluation))
        return evaluation

    def with_points(self, points: Float[Array, "point *shape"]) -> "Batch":
        """Return the same rows with other points, such as blurred ones."""
        return Batch(points, self.labels, self.rows, self.step_scale)


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
        return jnp.asarray(values, jnp.asarray(data[:1]).dtype)
    if np.issubdtype(values.dtype, np.integer):
        return jnp.asarray(values.astype(np.int32))
    raise ValueError(
        "`labels` must be classes (integers) or known energies (floating point), but "
        f"are {values.dtype}."
    )


def check_range(values: Any, num_classes: int) -> None:
    """Raise `ValueError` unless classes are in range, or -1."""
    values = np.asarray(values)
    bad = (values < -1) | (values >= num_classes)
    if bad.any():
        index = int(bad.argmax())
        raise ValueError(
            f"`labels` must be classes from 0 to {num_classes - 1}, or -1 for unknown, "
            f"but {int(bad.sum())} are not, the first {values[index]} at index {index}."
        )


@gate
def check_classes(values: np.ndarray, num_classes: int | None = None) -> np.ndarray:
    """Return classes as integers.

    Args:
        values: The classes, -1 for unknown.
        num_classes: How many there are; by default the largest plus one.

    Raises:
        ValueError: If they are not classes, out of range, or of one kind only.
    """
    if not np.issubdtype(values.dtype, np.integer):
        raise ValueError(
            f"`labels` must be whole numbers, the classes, but are {values.dtype}: use "
            "labels.astype(int)."
        )
    check_range(values, num_classes or max(1, int(values.max(initial=-1)) + 1))
    kinds = np.unique(values[values >= 0])
    if len(kinds) < 2:
        raise ValueError(
            "`labels` must hold at least two classes, but hold "
            f"{'the class ' + str(kinds[0]) + ' alone' if len(kinds) else 'none'}. "
            "Fit data of one class without labels."
        )
    return values.astype(np.int32)
