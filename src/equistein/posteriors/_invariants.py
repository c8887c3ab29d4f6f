"""What of a posterior's draws does not depend on the labels."""

from collections.abc import Mapping

import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein.posteriors._parameters import Parameters


def invariants(
    parameters: Parameters, values: Mapping[str, Float[Array, "chain draw *value"]]
) -> dict[str, Float[Array, "chain draw *number"]]:
    """Return arrays that a swap of labels leaves as they are, those with labels first.

    Of a parameter with labels, its order statistics along them, as "x (sorted)"; of
    absolute values where signs may change, as "|x| (sorted)"; of one with two axes of
    labels those of the diagonal, as "x (diagonal, sorted)". Of what is periodic, cosine
    and sine, as "x (cos)".

    Args:
        parameters: What the values are.
        values: Each parameter's draws, by name.
    """
    with_labels, without = {}, {}
    for i, name in enumerate(parameters.names):
        period, axes = parameters.constraints[i].period, parameters.axes[i]
        for label, array in charts(name, values[name], period):
            if axes:
                label, array = _ordered(label, array, axes, parameters.signed)
                with_labels[label] = array
            else:
                without[label] = array
    return with_labels | without


def charts(name: str, array: Array, period: float) -> list[tuple[str, Array]]:
    """Return numbers by name: those of the line, or cosine and sine on a circle."""
    if period == float("inf"):
        return [(name, array)]
    angle = array * (2 * jnp.pi / period)
    return [(f"{name} (cos)", jnp.cos(angle)), (f"{name} (sin)", jnp.sin(angle))]


def _ordered(
    name: str, array: Array, axes: tuple[int, ...], signed: bool
) -> tuple[str, Array]:
    """Return order statistics along the axes of the labels, after chain and draw."""
    if signed:
        name, array = f"|{name}|", jnp.abs(array)
    if len(axes) == 1:
        return f"{name} (sorted)", jnp.sort(array, axis=axes[0] + 2)
    diagonal = jnp.diagonal(array, axis1=axes[0] + 2, axis2=axes[1] + 2)
    return f"{name} (diagonal, sorted)", jnp.sort(diagonal, axis=-1)
