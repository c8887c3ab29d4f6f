"""A multilayer perceptron on flattened points."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.random as jr
from jaxtyping import Array, Float

from equistein._gate import gate
from equistein._numbers import check_integers
from equistein._types import Key, Point
from equistein.groups import Trivial
from equistein.networks._base import AbstractNetwork
from equistein.networks._dense import dense
from equistein.networks._weights import check_weights


@gate
class MLP(AbstractNetwork):
    """A smooth function of a point of any shape, as a multilayer perceptron.

    The sampler differentiates it in its input, so the activation should be smooth.

    Args:
        in_size: The number of coordinates of a point.
        widths: The number of units of each hidden layer.
        out_size: The number of outputs, or None for one number.
        activation: The activation of the hidden layers.
        key: The source of the weights.
    """

    layers: tuple[eqx.nn.Linear, ...]
    activation: Callable

    def __init__(
        self,
        in_size: int,
        *,
        widths: Sequence[int] = (128, 128, 128),
        out_size: int | None = None,
        activation: Callable = jax.nn.silu,
        key: Key,
    ):
        check_integers("MLP", in_size=in_size)
        for width in widths:
            check_integers("MLP", widths=width)
        if out_size is not None:
            check_integers("MLP", out_size=out_size)
        sizes = [in_size, *map(int, widths), out_size or "scalar"]
        check_weights("MLP", "widths", in_size, *widths, out_size or 1)
        keys = jr.split(key, len(sizes) - 1)
        self.layers = tuple(
            eqx.nn.Linear(before, after, key=key)  # type: ignore[arg-type]
            for before, after, key in zip(sizes[:-1], sizes[1:], keys, strict=True)
        )
        self.activation = activation

    def __call__(self, point: Point) -> Float[Array, "*class"]:
        hidden = point.ravel()
        for layer in self.layers[:-1]:
            hidden = self.activation(dense(layer, hidden))
        return dense(self.layers[-1], hidden)

    @property
    def num_outputs(self) -> int:
        last = self.layers[-1].out_features
        return 1 if last == "scalar" else int(last)

    def group(self, shape: tuple[int, ...]) -> Trivial:
        return Trivial()
