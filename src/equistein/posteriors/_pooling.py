"""Numbers of coordinates made equal where a swap of labels exchanges them."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein.posteriors._parameters import Parameters


def pooled(
    parameters: Parameters, numbers: Float[Array, " dim"]
) -> Float[Array, " dim"]:
    r"""Return the mean of a number of each coordinate over those it is swapped with.

    $$\bar v = \frac1{|G|} \sum_g g v$$

    for the swaps g, without their sum: along an axis of labels it is the mean; of a
    matrix whose rows and columns both are labels, the diagonal has one mean, and the
    rest has another.
    """
    means = []
    parts = parameters.free(numbers).values()
    for array, axes in zip(parts, parameters.axes, strict=True):
        if len(axes) == 1:
            mean = jnp.mean(array, axis=axes[0], keepdims=True)
            array = jnp.broadcast_to(mean, array.shape)
        elif axes:
            array = _matrix_mean(array, axes)
        means.append(array.ravel())
    return jnp.concatenate(means)


def without_signs(
    parameters: Parameters, center: Float[Array, " dim"]
) -> Float[Array, " dim"]:
    """Return a pooled center, zero where labels change their signs."""
    if not parameters.signed:
        return center
    parts = zip(parameters.free(center).values(), parameters.axes, strict=True)
    return jnp.concatenate(
        [jnp.zeros(part.size) if axes else part.ravel() for part, axes in parts]
    )


def _matrix_mean(array: Array, axes: tuple[int, ...]) -> Array:
    """Return the means of the diagonal along two axes, and of what is off it."""
    on = np.expand_dims(
        np.eye(array.shape[axes[0]]),
        [axis for axis in range(array.ndim) if axis not in axes],
    )
    mean = jnp.zeros_like(array)
    for mask in (on, 1 - on):
        where = jnp.asarray(mask, array.dtype)
        share = jnp.sum(array * where, axis=axes, keepdims=True) / mask.sum()
        mean = mean + share * where
    return mean
