"""Labels and numbers that a metric cannot take."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float


def check_labels(owner: str, labels: Any, num: int, *, unknown: bool = False) -> None:
    """Raise unless labels are some of the classes 0 to `num - 1`.

    Of labels that are traced the numbers are not known: `are_labels` tells there.

    Args:
        owner: Who needs them.
        labels: The labels.
        num: The number of classes.
        unknown: Whether -1 may stand for an unknown class.

    Raises:
        ValueError: If one is no class.
    """
    if isinstance(labels, Tracer):
        return
    values = np.asarray(labels)
    bad = (values < (-1 if unknown else 0)) | (values >= num)
    if np.any(bad):
        raise ValueError(
            f"`{owner}` needs `labels`, classes from 0 to {num - 1}"
            f"{', or -1 where unknown' if unknown else ''}, but {np.sum(bad)} of "
            f"{values.size} are not, the first {values[bad][0]} at index "
            f"{np.argmax(bad)}. Leave out points of other classes."
        )


def are_labels(labels: Array, num: int) -> Bool[Array, ""]:
    """Return whether labels are all some of the classes 0 to `num - 1`."""
    return jnp.all((labels >= 0) & (labels < num))


def are_numbers(*arrays: Float[Array, "..."]) -> Bool[Array, ""]:
    """Return whether no entry of arrays is NaN, of which comparisons know nothing."""
    good = jnp.ones((), bool)
    for array in arrays:
        good &= ~jnp.any(jnp.isnan(array))
    return good


def nan_unless(
    good: Bool[Array, ""], value: Float[Array, "*shape"]
) -> Float[Array, "*shape"]:
    """Return a value, or NaN where what it was made of was not good."""
    return jnp.where(good, value, jnp.nan)
