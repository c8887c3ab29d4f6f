"""Layers on many rows at once."""

import equinox as eqx
from jaxtyping import Array, Float


def dense(
    layer: eqx.nn.Linear, rows: Float[Array, "*row in"]
) -> Float[Array, "*row out"] | Float[Array, "*row"]:
    """Return a linear layer of each row, by one product with the rows on the left.

    `jax.vmap(layer)(rows)` has the weights on the left. Under two of it, of the rows of
    a point and of points, and in derivatives, that costs transposed copies: training of
    `EGNN` takes twice as long.
    """
    if layer.out_features == "scalar":
        product = rows @ layer.weight[0]
        return product if layer.bias is None else product + layer.bias[0]
    product = rows @ layer.weight.T
    if layer.bias is None:
        return product
    return product + layer.bias.reshape(*[1] * (rows.ndim - 1), -1)


def perceptron(
    network: eqx.nn.MLP, rows: Float[Array, "*row in"]
) -> Float[Array, "*row out"] | Float[Array, "*row"]:
    """Return a multilayer perceptron of each row."""
    for layer in network.layers[:-1]:
        rows = network.activation(dense(layer, rows))
    return network.final_activation(dense(network.layers[-1], rows))
