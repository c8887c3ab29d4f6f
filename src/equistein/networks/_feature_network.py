"""Networks of networks: on features of a point, and averaged over a group."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
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
        values = jax.jit(jax.vmap(features))(data)
        self.network = network
        self.features = features
        self.mean = jnp.mean(values, axis=0)
        self.scale = jnp.std(values, axis=0)
        constant = self.scale <= 1e-6 * jnp.max(jnp.abs(values), axis=0)
        if bool(jnp.any(constant)):
            raise ValueError(
                "FeatureNetwork needs `data` that varies, but "
                f"{int(jnp.sum(constant))} of its {constant.size} features are "
                f"constant, the first at index {int(jnp.argmax(constant))}. Drop "
                "constant columns, or give more data."
            )
        standard = (values - self.mean[None]) / self.scale[None]
        self.low = jnp.min(standard, axis=0)
        self.high = jnp.max(standard, axis=0)

    def __call__(self, point: Point) -> Float[Array, "*class"]:
        z = self._standardize(point)
        low, high = self._fixed(self.low, z), self._fixed(self.high, z)
        beyond = jax.nn.relu(z - high) + jax.nn.relu(low - z)
        return self.network(z) - 0.5 * jnp.sum(beyond**2)

    @property
    def num_outputs(self) -> int:
        return eqx.filter_eval_shape(self.network, self.mean).size

    def group(self, shape: tuple[int, ...]) -> AbstractGroup:
        return self.features.group(shape)

    def _standardize(self, point: Point) -> Features:
        values = self.features(point)
        mean, scale = self._fixed(self.mean, values), self._fixed(self.scale, values)
        return (values - mean) / scale

    def _fixed(self, constant: Features, like: Features) -> Features:
        """Return a constant of the data, which is not trained."""
        return jax.lax.stop_gradient(constant).astype(like.dtype)


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
