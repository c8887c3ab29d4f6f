"""Networks of networks: on features of a point, and averaged over a group."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein._check_arguments import check_arguments
from equistein._types import Features, Particles, Point
from equistein.features import AbstractFeatures
from equistein.groups import AbstractGroup
from equistein.networks._base import AbstractNetwork


@check_arguments
class FeatureNetwork(AbstractNetwork):
    r"""A network on standardized features, with walls around the data.

    $$f(x) = h(z) - \tfrac12 \sum_i \max(0, z_i - b_i, a_i - z_i)^2, \qquad
      z = (F(x) - m) / s$$

    The mean m, the scale s and the range [a, b] are those of the data's features. The
    walls, one standard deviation wide, keep the density normalizable. With invariant
    features the network is invariant; with `Coordinates` it has no symmetry.

    Args:
        network: The function $h$ of the standardized features.
        features: The feature map $F$.
    """

    network: Callable[[Features], Float[Array, "*class"]]
    features: AbstractFeatures
    mean: Float[Array, " feature"]
    scale: Float[Array, " feature"]
    low: Float[Array, " feature"]
    high: Float[Array, " feature"]

    def __init__(
        self,
        network: Callable[[Features], Float[Array, "*class"]],
        features: AbstractFeatures,
        data: Particles,
    ):
        values = np.asarray(jax.jit(jax.vmap(features))(data))
        mean, scale = values.mean(axis=0, dtype=float), values.std(axis=0, dtype=float)
        constant = scale <= 1e-6 * np.max(np.abs(values), axis=0)
        if constant.any():
            raise ValueError(
                "FeatureNetwork needs `data` that varies, but "
                f"{constant.sum()} of its {constant.size} features are "
                f"constant, the first at index {np.argmax(constant)}. Drop "
                "constant columns, or give more data."
            )
        standard = (values - mean) / scale
        ranges = mean, scale, standard.min(axis=0), standard.max(axis=0)
        self.network, self.features = network, features
        self.mean, self.scale, self.low, self.high = (
            jnp.asarray(each, values.dtype) for each in ranges
        )

    def __call__(self, point: Point) -> Float[Array, "*class"]:
        values = self.features(point)
        # Constants of the data, which are not trained.
        constants = jax.lax.stop_gradient((self.mean, self.scale, self.low, self.high))
        mean, scale, low, high = (each.astype(values.dtype) for each in constants)
        z = (values - mean) / scale
        beyond = jax.nn.relu(z - high) + jax.nn.relu(low - z)
        return self.network(z) - 0.5 * jnp.sum(beyond**2)

    @property
    def num_outputs(self) -> int:
        return eqx.filter_eval_shape(self.network, self.mean).size

    def group(self, shape: tuple[int, ...]) -> AbstractGroup:
        return self.features.group(shape)


@check_arguments
class Symmetrized(AbstractNetwork):
    r"""The mean of any network over a finite group, $\frac1{|G|} \sum_g f(g x)$."""

    network: AbstractNetwork
    symmetry: AbstractGroup

    def __check_init__(self):
        if self.symmetry.order is None:
            raise ValueError(
                "Symmetrized needs a finite `symmetry` such as Cyclic(4), but got "
                f"{self.symmetry}. For a continuous group take invariant features."
            )

    def __call__(self, point: Point) -> Float[Array, "*class"]:
        return jnp.mean(jax.vmap(self.network)(self.symmetry.orbit(point)), axis=0)

    @property
    def num_outputs(self) -> int | None:
        return self.network.num_outputs

    def group(self, shape: tuple[int, ...]) -> AbstractGroup:
        self.symmetry.check_shape(shape)
        return self.symmetry
