"""Checks of bins, and marks of invalid labels and numbers that are traced."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from equistein._limits import check_memory
from equistein._numbers import check_integers

_BYTES = 40  # of a bin: its edges, and what is counted


def check_bins(owner: str, num_bins: int) -> None:
    check_integers(f"`{owner}`", num_bins=num_bins)
    what = f"`{owner}` in so many bins"
    check_memory(what, _BYTES * num_bins, "take a smaller `num_bins`")


def are_labels(labels: Array, num: int) -> Bool[Array, ""]:
    """Return whether all labels are classes 0 to `num - 1`."""
    return jnp.all((labels >= 0) & (labels < num))


def are_numbers(*arrays: Float[Array, "..."]) -> Bool[Array, ""]:
    """Return whether no entry is NaN, which comparisons would hide."""
    return ~jnp.any(jnp.stack([jnp.any(jnp.isnan(array)) for array in arrays]))


def nan_unless(
    good: Bool[Array, ""], value: Float[Array, "*shape"]
) -> Float[Array, "*shape"]:
    """Return a value, or NaN where its input was invalid."""
    return jnp.where(good, value, jnp.nan)
