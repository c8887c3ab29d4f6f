"""Checks of labels."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein.energies import AbstractEnergy, FormulasEnergy, JointEnergy
from equistein.training._state import Labels


def check_labels(
    labels: Any, energy: AbstractEnergy, data: Float[Array, "datum *shape"]
) -> Labels:
    """Return labels as the losses take them: classes, or known energies.

    Args:
        labels: One a data point, or None.
        energy: The energy to train.
        data: The data points.

    Raises:
        ValueError: If they do not fit the data or the energy.
    """
    num, shape, dtype = len(data), data.shape[1:], data.dtype
    joint = isinstance(energy, JointEnergy)
    if labels is None:
        if joint:
            raise ValueError(
                "`labels` are missing: a JointEnergy needs the class of each data "
                "point, from 0 on, and -1 where it is unknown. For data without "
                "classes take a PlainEnergy."
            )
        if isinstance(energy, FormulasEnergy):
            raise ValueError(
                "`labels` are missing: a FormulasEnergy needs the number of the "
                "formula of each molecule."
            )
        return None
    values = np.asarray(labels)
    if values.shape != (num,):
        raise ValueError(
            f"`labels` must be one number for each of the {num} data points, but have "
            f"shape {values.shape}."
        )
    if isinstance(energy, FormulasEnergy):
        known = check_classes(values, len(energy.formulas))
        if (known < 0).any():
            raise ValueError("`labels` must tell the formula of every molecule.")
        return jnp.asarray(known)
    if joint:
        return jnp.asarray(check_classes(values, energy.num_classes(shape)))
    if not np.issubdtype(values.dtype, np.floating):
        raise ValueError(
            f"`labels` of type {values.dtype} look like classes, but "
            f"{type(energy).__name__} has none: build the energy with "
            "energy_for(..., num_classes=K), or give known energies as floating-point "
            "numbers."
        )
    if np.isinf(values).any() or np.isnan(values).all():
        raise ValueError(
            "`labels` must be the known energies of the data points, with NaN where "
            "they are unknown, but "
            f"{'some are infinite' if np.isinf(values).any() else 'all are NaN'}."
        )
    return jnp.asarray(values, dtype)


def num_classes_of(energy: AbstractEnergy, shape: tuple[int, ...]) -> int | None:
    """Return the number of classes of an energy, or None if it has none."""
    return energy.num_classes(shape) if isinstance(energy, JointEnergy) else None


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
