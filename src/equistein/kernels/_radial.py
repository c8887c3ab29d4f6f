"""Kernels of the distance: Gaussian and inverse multiquadric."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Float

from equistein._types import Point, Scalar
from equistein.kernels._bandwidth import AbstractBandwidth, Median
from equistein.kernels._base import AbstractScalarKernel
from equistein.kernels._blocks import map_blocks
from equistein.kernels._distances import centered, flatten, squared_distances


class AbstractRadialKernel(AbstractScalarKernel):
    r"""A kernel $k(x, y) = \kappa(|x - y|^2)$ with a bandwidth.

    Its force is a product of the Gram matrix with the scores and the sources.

    Jointly invariant, $k(gx, gy) = k(x, y)$, under every group that preserves
    distances; a kernel made from it by averaging over a group relies on this.
    """

    @abc.abstractmethod
    def profile(
        self, squared: Float[Array, "*pairs"]
    ) -> tuple[Float[Array, "*pairs"], Float[Array, "*pairs"]]:
        r"""Return $\kappa$ and its derivative $\kappa'$ at squared distances."""

    def __call__(self, x: Point, y: Point) -> Scalar:
        return self.profile(jnp.sum((x - y) ** 2))[0]

    def stein_force(
        self,
        targets: Float[Array, "target *shape"],
        sources: Float[Array, "source *shape"],
        scores: Float[Array, "source *shape"],
    ) -> Float[Array, "target *shape"]:
        x, y = centered(flatten(targets), flatten(sources))
        s = flatten(scores)
        total = map_blocks(lambda rows: self._block_sum(rows, y, s), x, len(y))
        return (total / len(y)).reshape(targets.shape)

    def fixed_bandwidth(self, like: Array) -> Scalar:
        """Return the bandwidth, which must be a number, in the precision of `like`.

        Raises:
            ValueError: If it is a rule, which needs particles.
        """
        if isinstance(self.bandwidth, AbstractBandwidth):
            raise ValueError(
                f"This kernel's `bandwidth` is the rule {self.bandwidth}, which needs "
                "particles: call kernel.with_bandwidth(measured_bandwidth(kernel, "
                "particles, scores)) first. SVGD does so."
            )
        return jnp.asarray(self.bandwidth, like.dtype)

    def _block_sum(
        self,
        targets: Float[Array, "target dim"],
        sources: Float[Array, "source dim"],
        scores: Float[Array, "source dim"],
    ) -> Float[Array, "target dim"]:
        """Return the sum of the Stein terms over the sources, all pairs at once."""
        value, slope = self.profile(squared_distances(targets, sources))
        # grad_y k = 2 kappa' (y - x)
        ones = jnp.ones((len(sources), 1), sources.dtype)
        pull = slope @ jnp.concatenate([sources, ones], axis=1)
        return value @ scores + 2 * (pull[:, :-1] - pull[:, -1:] * targets)


class RBF(AbstractRadialKernel):
    r"""The Gaussian kernel.

    $$k(x, y) = \exp\bigl(-|x - y|^2 / 2 h^2\bigr)$$

    BlackJAX's and NumPyro's `length_scale` is $2 h^2$.

    Args:
        bandwidth: The length $h > 0$, in the units of the points, or a rule for it.

    Raises:
        ValueError: If `bandwidth` is not positive.

    References:
        Liu and Wang (2016), Stein Variational Gradient Descent, section 5.
    """

    bandwidth: Scalar | AbstractBandwidth

    def __init__(self, bandwidth: float | Scalar | AbstractBandwidth | None = None):
        self.bandwidth = _as_bandwidth("RBF", bandwidth)

    def profile(self, squared):
        inverse = 0.5 / self.fixed_bandwidth(squared) ** 2
        value = jnp.exp(-squared * inverse)
        return value, -inverse * value

    def _block_sum(self, targets, sources, scores):
        inverse = 1 / self.fixed_bandwidth(targets) ** 2
        gram = jnp.exp(-0.5 * inverse * squared_distances(targets, sources))
        # grad_y k = k (x - y) / h^2, so all three sums come from one product.
        ones = jnp.full((len(sources), 1), inverse)
        sums = gram @ jnp.concatenate([scores - inverse * sources, ones], axis=1)
        return sums[:, :-1] + sums[:, -1:] * targets


class IMQ(AbstractRadialKernel):
    r"""The inverse multiquadric kernel.

    $$k(x, y) = \bigl(1 + |x - y|^2 / 2 h^2\bigr)^{-1/2}$$

    Its tails reach far, so distant particles still repel; with it the kernel Stein
    discrepancy detects non-convergence (the Gaussian's does not in high dimension).

    Args:
        bandwidth: The length $h > 0$, in the units of the points, or a rule for it.

    Raises:
        ValueError: If `bandwidth` is not positive.

    References:
        Gorham and Mackey (2017), Measuring Sample Quality with Kernels.
    """

    bandwidth: Scalar | AbstractBandwidth

    def __init__(self, bandwidth: float | Scalar | AbstractBandwidth | None = None):
        self.bandwidth = _as_bandwidth("IMQ", bandwidth)

    def profile(self, squared):
        inverse = 0.5 / self.fixed_bandwidth(squared) ** 2
        value = jax.lax.rsqrt(1 + squared * inverse)
        return value, -0.5 * inverse * value**3


def _as_bandwidth(name: str, bandwidth) -> Scalar | AbstractBandwidth:
    if bandwidth is None:
        return Median()
    if isinstance(bandwidth, AbstractBandwidth):
        return bandwidth
    message = (
        f"{name} needs `bandwidth`, a positive length in the units of the points or a "
        "rule such as Median()"
    )
    if isinstance(bandwidth, int | float):
        if not 0 < bandwidth < float("inf"):
            raise ValueError(f"{message}, but got {bandwidth!r}.")
        return jnp.asarray(float(bandwidth))
    bandwidth = jnp.asarray(bandwidth)
    if bandwidth.shape != () or not jnp.issubdtype(bandwidth.dtype, jnp.floating):
        raise ValueError(
            f"{message}, but got an array of shape {bandwidth.shape} and type "
            f"{bandwidth.dtype}."
        )
    if not isinstance(bandwidth, Tracer):
        if not bool(bandwidth > 0):
            raise ValueError(f"{message}, but got {bandwidth}.")
        return bandwidth
    return eqx.error_if(bandwidth, ~(bandwidth > 0), f"{message}.")
