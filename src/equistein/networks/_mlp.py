"""A multilayer perceptron on flattened points."""

from collections.abc import Callable

import equinox as eqx
import jax
from jaxtyping import Array, Float

from equistein._types import Key, Point
from equistein.groups import Trivial
from equistein.networks._base import AbstractNetwork


class MLP(AbstractNetwork):
    """A smooth function of a point of any shape, as a multilayer perceptron.

    The sampler differentiates it in its input, so the activation should be smooth.

    Args:
        in_size: The number of coordinates of a point.
        out_size: The number of outputs, or None for one number.
        width: The number of units of each hidden layer.
        depth: The number of hidden layers.
        activation: The activation of the hidden layers.
        key: The source of the weights.
    """

    layers: eqx.nn.MLP

    def __init__(
        self,
        in_size: int,
        *,
        out_size: int | None = None,
        width: int = 128,
        depth: int = 3,
        activation: Callable = jax.nn.silu,
        key: Key,
    ):
        self.layers = eqx.nn.MLP(
            in_size, out_size or "scalar", width, depth, activation=activation, key=key
        )

    def __call__(self, point: Point) -> Float[Array, "*class"]:
        return self.layers(point.ravel())

    def group(self, shape: tuple[int, ...]) -> Trivial:
        return Trivial()
