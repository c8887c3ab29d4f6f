"""Multilayer perceptrons on flattened points, and their layers."""

import itertools
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from equistein._check_arguments import check_arguments
from equistein._limits import check_memory
from equistein._numbers import check_integers
from equistein._types import Key, Point, Scalar
from equistein.groups import Trivial
from equistein.networks._base import AbstractNetwork, AbstractNoiseNetwork

NUM_WAVES = 16
_BYTES = 20  # of a weight, its gradient, Adam's two numbers and a running mean


@check_arguments
class MLP(AbstractNetwork):
    """A function of a point of any shape, smooth with a smooth activation.

    Args:
        in_size: The number of coordinates of a point.
        widths: The number of units of each hidden layer.
        out_size: The number of outputs, or None for one number.
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
        return perceptron(self, point.ravel())

    @property
    def num_outputs(self) -> int:
        return self.layers[-1].weight.shape[0]

    def group(self, shape: tuple[int, ...]) -> Trivial:
        return Trivial()


@check_arguments
class NoiseMLP(AbstractNoiseNetwork):
    r"""A function of a point of any shape and of the noise in it, without symmetry.

    An `MLP` of the coordinates and of waves of $\log\sigma$, to compare with `EGNN`.
    """

    network: MLP

    def __init__(self, in_size: int, *, widths: Sequence[int] = (256,) * 3, key: Key):
        self.network = MLP(in_size + NUM_WAVES, widths=widths, key=key)

    def __call__(self, point: Point, noise: Scalar | None = None) -> Scalar:
        noise = jnp.ones((), point.dtype) if noise is None else noise
        return self.network(jnp.concatenate([point.ravel(), noise_waves(noise)]))

    def group(self, shape: tuple[int, ...]) -> Trivial:
        return Trivial()


def noise_waves(noise: Scalar) -> Float[Array, " wave"]:
    """Return sines of the logarithm of the noise, of several frequencies and phases."""
    frequencies = jnp.linspace(0.3, 6.0, NUM_WAVES, dtype=noise.dtype)
    phases = (jnp.arange(NUM_WAVES) % 4).astype(noise.dtype)
    return jnp.sin(jnp.log(noise) * frequencies + phases)


def dense(
    layer: eqx.nn.Linear, rows: Float[Array, "*row in"]
) -> Float[Array, "*row out"] | Float[Array, "*row"]:
    """Return a linear layer of each row, by one product with the rows on the left.

    In `jax.vmap(layer)(rows)` the weights are on the left. Nested, and in derivatives,
    that costs transposed copies: training of `EGNN` takes twice as long.
    """
    if layer.out_features == "scalar":
        product = rows @ layer.weight[0]
        return product if layer.bias is None else product + layer.bias[0]
    product = rows @ layer.weight.T
    if layer.bias is None:
        return product
    return product + layer.bias.reshape(*[1] * (rows.ndim - 1), -1)


def perceptron(
    network: MLP | eqx.nn.MLP, rows: Float[Array, "*row in"]
) -> Float[Array, "*row out"] | Float[Array, "*row"]:
    """Return a multilayer perceptron of each row, without a last activation."""
    for layer in network.layers[:-1]:
        rows = network.activation(dense(layer, rows))
    return dense(network.layers[-1], rows)


def check_weights(owner: str, name: str, *sizes: int, layers: int = 1) -> None:
    """Raise `LimitError` unless weights between sizes can be trained in memory.

    The argument `name` sets the sizes; all of this comes `layers` times.
    """
    num = layers * sum(first * second for first, second in itertools.pairwise(sizes))
    what = f"The {num} weights of {owner} in training"
    check_memory(what, _BYTES * num, f"take a smaller `{name}`")
