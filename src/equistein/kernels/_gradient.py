"""The gradient of a kernel of invariant features: curl-free fields."""

import jax
import jax.numpy as jnp

from equistein._gate import gate
from equistein._products import einsum, matmul
from equistein.features import AbstractFeatures
from equistein.kernels._on_features import AbstractPulledBackKernel
from equistein.kernels._pairs import squared_distances
from equistein.kernels._radial import AbstractRadialKernel, Squared


@gate
class Gradient(AbstractPulledBackKernel):
    r"""A kernel on invariant features whose fields are gradients.

    $$K(x, y) = \nabla_x \nabla_y^\top k(F(x), F(y))$$

    As `Pullback`, for groups too big to enumerate, with a force that is the gradient of
    an invariant function,

    $$\psi(x) = \nabla_x \tfrac1n \sum_j (L k(x, \cdot))(x_j), \qquad
      L f = s \cdot \nabla f + \Delta f.$$

    It vanishes where the features of all particles agree and at distances far above
    the bandwidth, and $K(x, x) = J^\top J / h^2$ for an RBF base: steps are in units
    of $h^2$ times those of `Pullback`. The target must be constant on the orbits of F.

    Args:
        base: The radial kernel $k$ on features; `RBF()` takes the median rule.
        features: The feature map $F$.

    Raises:
        ValueError: If `base` is not radial or `features` not a feature map.
    """

    base: AbstractRadialKernel
    features: AbstractFeatures

    def _block_sum(self, targets, sources, pushed, metric):
        num, size = sources.shape
        bent = einsum("nfg,ng->nf", metric, sources)
        level = jnp.sum(sources * pushed, axis=1) + jnp.trace(metric, axis1=1, axis2=2)
        twice = jnp.sum(sources * bent, axis=1)
        once = jnp.concatenate([level[:, None], pushed], axis=1)
        again = jnp.concatenate([twice[:, None], bent, metric.reshape(num, -1)], axis=1)

        def potential(f):
            """Return the sum over sources and targets of L k."""
            slope, bend = self._derivatives(squared_distances(f, sources))
            first, second = matmul(slope, once), matmul(bend, again)
            drift = first[:, 0] - jnp.sum(first[:, 1:] * f, axis=1)
            inner = second[:, 1 + size :].reshape(-1, size, size)
            curved = einsum("nfg,nf,ng->n", inner, f, f)
            curved += second[:, 0] - 2 * jnp.sum(second[:, 1 : 1 + size] * f, axis=1)
            return jnp.sum(2 * drift + 4 * curved)

        return jax.grad(potential)(targets)

    def _feature_matrix(self, x, y):
        gap = x - y
        slope, bend = self._derivatives(jnp.sum(gap**2))
        identity = jnp.eye(x.size, dtype=x.dtype)
        return -2 * slope * identity - 4 * bend * jnp.outer(gap, gap)

    def _derivatives(self, squared: Squared) -> tuple[Squared, Squared]:
        r"""Return $\kappa'$ and $\kappa''$."""
        slope = lambda q: self.base.profile(q)[1]
        return jax.jvp(slope, (squared,), (jnp.ones_like(squared),))
