"""The proportions of samples in the modes of a density."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from equistein._gate import finite_gate
from equistein._limits import check_made
from equistein._numbers import check_integers
from equistein.metrics._known_labels import (
    are_labels,
    are_numbers,
    check_labels,
    nan_unless,
)


@finite_gate
def mode_weights(
    samples: Float[Array, "n *shape"], modes: Float[Array, "mode *shape"]
) -> Float[Array, " mode"]:
    """Return the proportion of the samples that is nearest to each mode.

    Args:
        samples: Samples, or invariant features of them, stacked on axis 0.
        modes: One point, or the features of one, a mode.
    """
    needed = 2 * samples.size * samples.dtype.itemsize * len(modes)
    check_made("`mode_weights`", needed, "give fewer samples, or features of them")
    gaps = (samples[:, None] - modes[None]) ** 2
    gaps = gaps.reshape(len(samples), len(modes), -1)
    found = proportions(jnp.argmin(jnp.sum(gaps, axis=-1), axis=1), len(modes))
    return nan_unless(are_numbers(samples, modes), found)


@finite_gate
def proportions(labels: Int[Array, " n"], num: int) -> Float[Array, " num"]:
    """Return the proportion of each of the labels 0 to `num - 1`.

    Raises:
        ValueError: If a label is none of these. NaN is returned where that is not known
            yet, under `jax.jit`.
    """
    check_integers("`proportions`", num=num)
    check_made("`proportions`", 9 * num * (len(labels) + 1), "take a smaller `num`")
    check_labels("proportions", labels, num)
    found = jnp.mean(labels[:, None] == jnp.arange(num)[None, :], axis=0)
    return nan_unless(are_labels(labels, num), found)
