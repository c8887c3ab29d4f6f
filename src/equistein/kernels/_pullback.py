"""The kernel of invariant features, pulled back to the points."""

import jax.numpy as jnp

from equistein._gate import gate
from equistein._products import einsum, matmul
from equistein.features import AbstractFeatures
from equistein.kernels._on_features import AbstractPulledBackKernel
from equistein.kernels._pairs import squared_distances
from equistein.kernels._radial import AbstractRadialKernel


@gate
class Pullback(AbstractPulledBackKernel):
    r"""A kernel on invariant features that makes SVGD equivariant.

    $$K(x, y) = J(x)^\top\, k(F(x), F(y))\, J(y), \qquad J = dF/dx$$

    For continuous groups and groups too big to enumerate. The force is

    $$\psi(x) = J(x)^\top \tfrac1n \sum_j k\, (J_j s_j + \Delta F(y_j))
      + J_j J_j^\top \nabla_2 k,$$

    where the Laplacian carries the volume element of the orbit space, $(d-1)/r$ for
    the radius. Particles move only in directions that change their features: nothing
    moves them along orbits. The target must be constant on the orbits of F. The
    `Median` rule measures distances between features.

    Args:
        base: The radial kernel $k$ on features; `RBF()` takes the median rule.
        features: The feature map $F$.

    Raises:
        ValueError: If `base` is not radial or `features` not a feature map.
    """

    base: AbstractRadialKernel
    features: AbstractFeatures

    def _block_sum(self, targets, sources, pushed, metric):
        value, slope = self.base.profile(squared_distances(targets, sources))
        num, size = sources.shape
        # grad_2 k = 2 kappa' (f_j - f_i): one product with M_j f_j, one with M_j.
        bent = einsum("nfg,ng->nf", metric, sources)
        sums = matmul(slope, jnp.concatenate([bent, metric.reshape(num, -1)], axis=1))
        spread = einsum("nfg,ng->nf", sums[:, size:].reshape(-1, size, size), targets)
        return matmul(value, pushed) + 2 * (sums[:, :size] - spread)

    def _feature_matrix(self, x, y):
        return self.base(x, y) * jnp.eye(x.size, dtype=x.dtype)
