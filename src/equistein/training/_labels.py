"""Checks of labels."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein._gate import gate
from equistein.training._batch import Labels


def as_labels(labels: Any, data: Float[Array, "datum *shape"] | np.ndarray) -> Labels:
    """Return labels as an array of classes or of known energies, one a data point.

    Raises:
        ValueError: If they are not one number for each point.
    """
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


def check_known_classes(labels: Any, num_classes: int | None, said: str) -> None:
    """Raise unless labels that are classes are some of an energy's.

    Raises:
        ValueError: If one is not; what is `said` begins the sentence.
    """
    if labels is None or num_classes is None:
        return
    values = np.asarray(labels)
    if not np.issubdtype(values.dtype, np.integer):
        return
    bad = (values < -1) | (values >= num_classes)
    if np.any(bad):
        raise ValueError(
            f"{said} the class {values[bad][0]}, but the energy has classes from 0 to "
            f"{num_classes - 1}, and -1 stands for unknown."
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
    top = num_classes or max(1, int(values.max(initial=-1)) + 1)
    bad = (values < -1) | (values >= top)
    if bad.any():
        index = int(bad.argmax())
        raise ValueError(
            f"`labels` must be classes from 0 to {top - 1}, or -1 where unknown, but "
            f"{int(bad.sum())} are not, the first {values[index]} at index {index}."
        )
    found = np.unique(values[values >= 0])
    if len(found) < 2:
        raise ValueError(
            "`labels` must hold at least two classes, but hold "
            f"{'the class ' + str(found[0]) + ' alone' if len(found) else 'none'}. "
            "Fit data of one class without labels."
        )
    return values.astype(np.int32)
