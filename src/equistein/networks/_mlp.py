"""A multilayer perceptron on flattened points."""

from collections.abc import Callable

import equinox as eqx
import jax

from equistein._types import Key, Point, Scalar


class MLP(eqx.Module):
    """A smooth scalar function of a point of any shape, as a multilayer perceptron.

    The sampler differentiates it in its input, so the activation should be smooth.

    Args:
        in_size: The number of coordinates of a point.
        width: The number of units of a hidden layer.
        depth: The number of hidden layers.
        activation: The activation of the hidden layers.
        key: The source of the weights.
    """

    layers: eqx.nn.MLP

    def __init__(
        self,
        in_size: int,
        *,
        width: int = 128,
        depth: int = 3,
        activation: Callable = jax.nn.silu,
        key: Key,
    ):
        self.layers = eqx.nn.MLP(
            in_size, "scalar", width, depth, activation=activation, key=key
        )

    def __call__(self, point: Point) -> Scalar:
        return self.layers(point.ravel())
