"""What of a posterior's draws does not depend on the labels."""

from collections.abc import Mapping

import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein.posteriors._parameters import Parameters


def invariants(
    parameters: Parameters, values: Mapping[str, Float[Array, "chain draw *value"]]
) -> dict[str, Float[Array, "chain draw *value"]]:
    """Return arrays that a swap of labels leaves as they are, by name.

    Of a parameter that has labels, its order statistics along them, of absolute values
    where signs may change; of one with two axes of labels, those of the diagonal. What
    is periodic has the names "x (cos)" and "x (sin)" instead of "x".

    Args:
        parameters: What the values are.
        values: Each parameter's draws, by name.
    """
    found = {}
    for i, name in enumerate(parameters.names):
        period, axes = parameters.constraints[i].period, parameters.axes[i]
        for label, array in _charts(name, values[name], period):
            found[label] = _ordered(array, axes, parameters.signed)
    return found


def _charts(name: str, array: Array, period: float) -> list[tuple[str, Array]]:
    if period == float("inf"):
        return [(name, array)]
    angle = array * (2 * jnp.pi / period)
    return [(f"{name} (cos)", jnp.cos(angle)), (f"{name} (sin)", jnp.sin(angle))]


def _ordered(array: Array, axes: tuple[int, ...], signed: bool) -> Array:
    """Return order statistics along the axes of the labels, after chain and draw."""
    if not axes:
        return array
    if signed:
        array = jnp.abs(array)
    if len(axes) == 1:
        return jnp.sort(array, axis=axes[0] + 2)
    first, second = axes
    return jnp.sort(jnp.diagonal(array, axis1=first + 2, axis2=second + 2), axis=-1)
