"""A multilayer perceptron that knows the level of noise."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein._gate import gate
from equistein._types import Key, Point, Scalar
from equistein.groups import Trivial
from equistein.networks._base import AbstractNoiseNetwork
from equistein.networks._mlp import MLP

NUM_WAVES = 16


@gate
class NoiseMLP(AbstractNoiseNetwork):
    r"""A function of a point of any shape and of the noise in it, without symmetry.

    A multilayer perceptron of the coordinates and of waves of $\log\sigma$: the twin of
    `EGNN` to compare with.

    Args:
        in_size: The number of coordinates of a point.
        widths: The number of units of each hidden layer.
        key: The source of the weights.
    """

    network: MLP
    in_size: int = eqx.field(static=True)

    def __init__(self, in_size: int, *, widths: Sequence[int] = (256,) * 3, key: Key):
        self.in_size = in_size
        self.network = MLP(in_size + NUM_WAVES, widths=widths, key=key)

    def __call__(self, point: Point, noise: Scalar | None = None) -> Scalar:
        noise = jnp.ones((), point.dtype) if noise is None else noise
        return self.network(jnp.concatenate([point.ravel(), noise_waves(noise)]))

    @property
    def size(self) -> int:
        return self.in_size

    def project(self, point: Point) -> Point:
        return point

    def group(self, shape: tuple[int, ...]) -> Trivial:
        return Trivial()


def noise_waves(noise: Scalar) -> Float[Array, " wave"]:
    """Return sines of the logarithm of the noise, of several frequencies and phases."""
    frequencies = jnp.linspace(0.3, 6.0, NUM_WAVES, dtype=noise.dtype)
    phases = (jnp.arange(NUM_WAVES) % 4).astype(noise.dtype)
    return jnp.sin(jnp.log(noise) * frequencies + phases)
