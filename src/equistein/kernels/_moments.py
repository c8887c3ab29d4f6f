"""The linear kernel of invariant features: SVGD as moment matching."""

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein._gate import gate
from equistein._numbers import check_positive
from equistein._products import matmul
from equistein._types import Particles, Point
from equistein.features import AbstractFeatures, jacobian
from equistein.kernels._base import Prepared
from equistein.kernels._on_features import AbstractFeatureKernel, Metric
from equistein.kernels._pairs import Targets

_MAX_PARTICLES = 256  # the metric is measured on


@gate
class Moments(AbstractFeatureKernel):
    r"""The gradient kernel of a linear kernel on features, with their mean metric.

    $$K(x, y) = J(x)^\top G^{-1} J(y), \qquad
      G = \tfrac1n \sum_j J_j J_j^\top + \lambda\, \tfrac{\mathrm{tr}}{m} I$$

    Its force is the gradient of one combination of the m features,

    $$\psi(x) = \nabla_x\, a \cdot F(x), \qquad G a = \tfrac1n \sum_j J_j s_j
      + \Delta F(x_j),$$

    which vanishes when the particles satisfy Stein's identity for every feature. For
    particles near the target it is the Langevin flow $-\nabla \log(q/p)$ projected on
    the gradients of the features, so that a step of length $\varepsilon$ does for them
    what Langevin dynamics does in a time $\varepsilon$, but without noise. It costs
    O(n) and holds the particles only by collective moments: they do not repel one by
    one. Use it with `SVGD(..., langevin=...)`, whose noise moves what the features do
    not see, with some tens of smooth features. Equivariant; the target must be constant
    on the orbits of F.

    Args:
        features: The feature map $F$.
        ridge: The share $\lambda$ of the mean metric that is added to its diagonal.
        metric: The matrix G; by default it is measured on (256 of) the sources.

    Raises:
        ValueError: If `features` is no feature map or `ridge` not positive.

    References:
        Liu and Wang (2018), Stein Variational Gradient Descent as Moment Matching.
    """

    features: AbstractFeatures
    _: dataclasses.KW_ONLY
    ridge: float = 1e-3
    metric: Metric | None = None

    def __check_init__(self):
        check_positive("Moments", ridge=self.ridge)

    def at(self, particles: Particles) -> "Moments":
        """Return this kernel with the metric G of some particles."""
        some = particles[:: -(-len(particles) // _MAX_PARTICLES)]
        jac = jax.vmap(lambda y: jacobian(self.features, y))(some)
        rows = jnp.swapaxes(jac, 1, 2).reshape(-1, jac.shape[1])
        metric = matmul(rows.T, rows) / len(some)
        size = len(metric)
        # The floor keeps the matrix regular where no feature moves.
        tiny = float(jnp.finfo(metric.dtype).tiny) ** 0.5
        extra = self.ridge * jnp.trace(metric) / size + tiny
        metric = metric + extra * jnp.eye(size, dtype=metric.dtype)
        return Moments(self.features, ridge=self.ridge, metric=metric)

    def force(self, targets: Targets, prepared: Prepared) -> Targets:
        def generated(y, s):
            along = jax.jvp(self.features, (y,), (s,))[1]
            return along + self.features.laplacian(y)

        kernel = self._with_metric(prepared.points)
        means = jnp.mean(jax.vmap(generated)(prepared.points, prepared.scores), axis=0)
        weights = jax.scipy.linalg.solve(
            kernel._known_metric(means.dtype), means, assume_a="pos"
        )
        return jax.vmap(jax.grad(lambda x: matmul(self.features(x), weights)))(targets)

    def matrix(self, x: Point, y: Point) -> Float[Array, "dim dim"]:
        right = jnp.linalg.solve(
            self._known_metric(x.dtype), jacobian(self.features, y)
        )
        return matmul(jacobian(self.features, x).T, right)

    def _with_metric(self, particles: Particles) -> "Moments":
        return self.at(particles) if self.metric is None else self

    def _known_metric(self, dtype: jnp.dtype) -> Metric:
        if self.metric is None:
            raise ValueError(
                "Moments without a `metric` needs particles: call "
                "kernel.at(particles) first. SVGD does so."
            )
        return self.metric.astype(dtype)
