"""Kernels of invariant features: Pullback, Gradient and Moments."""

import abc
import dataclasses
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein._check_arguments import check_arguments
from equistein._numbers import check_positive
from equistein._products import einsum, matmul
from equistein._types import Features, LogDensity, Particles, Point
from equistein.features import AbstractFeatures
from equistein.groups import check_invariance, is_custom
from equistein.kernels._bandwidth import SquaredDistances
from equistein.kernels._base import AbstractKernel, check_symmetry, Prepared
from equistein.kernels._pairs import (
    centered,
    flatten,
    map_blocks,
    SourceRows,
    Sources,
    squared_distances,
    TargetRows,
    Targets,
)
from equistein.kernels._radial import (
    AbstractDerivedKernel,
    AbstractRadialKernel,
    Squared,
)

Metric: TypeAlias = Float[Array, "feature feature"]
Metrics: TypeAlias = Float[Array, "source feature feature"]
_MAX_PARTICLES = 256  # that the metric of Moments is measured on


class PreparedFeatures(eqx.Module):
    """The features F(y) of each source, its pushed score and its metric."""

    features: SourceRows
    pushed: SourceRows
    metric: Metrics


class AbstractFeatureKernel(AbstractKernel):
    """A kernel with the symmetry of its features."""

    features: eqx.AbstractVar[AbstractFeatures]

    def project(self, point: Point) -> Point:
        return self.features.group(point.shape).project(point)

    def check(self, log_density: LogDensity, points: Particles) -> None:
        group = self.features.group(points.shape[1:])
        if is_custom(self.features):
            check_invariance(self.features, group, points, name="features")
        check_symmetry(self, group, log_density, points)


class AbstractPulledBackKernel(AbstractFeatureKernel, AbstractDerivedKernel):
    r"""A kernel $J(x)^\top\, B(F(x), F(y))\, J(y)$ with $J = dF/dx$.

    Its Stein force is pulled back from features, and depends on a source through
    F(y), the pushed score $p = J s + \Delta F$ and the metric $M = J J^\top$.
    """

    @abc.abstractmethod
    def _block_sum(
        self, targets: TargetRows, sources: SourceRows, pushed: SourceRows,
        metric: Metrics,
    ) -> TargetRows:  # fmt: skip
        """Return the sum of the Stein terms over the sources, on features."""

    @abc.abstractmethod
    def _feature_matrix(self, x: Features, y: Features) -> Metric:
        """Return $B(F(x), F(y))$."""

    def prepare(self, sources: Sources, scores: Sources) -> PreparedFeatures:
        jac = jax.vmap(self.features.jacobian)(sources)
        pushed = einsum("nfd,nd->nf", jac, flatten(scores))
        pushed = pushed + jax.vmap(self.features.laplacian)(sources)
        metric = einsum("nfd,ngd->nfg", jac, jac)
        return PreparedFeatures(jax.vmap(self.features)(sources), pushed, metric)

    def force(self, targets: Targets, prepared: PreparedFeatures) -> Targets:
        places, pushed, metric = prepared.features, prepared.pushed, prepared.metric
        there, pull_back = jax.vmap(lambda x: jax.vjp(self.features, x))(targets)
        here, places = centered(there, places, places)
        block = lambda rows: self._block_sum(rows, places, pushed, metric)
        total = map_blocks(block, here, len(places))
        (force,) = jax.vmap(lambda vjp, f: vjp(f))(pull_back, total / len(places))
        return force

    def matrix(self, x: Point, y: Point) -> Float[Array, "dim dim"]:
        middle = self._feature_matrix(self.features(x), self.features(y))
        left = matmul(self.features.jacobian(x).T, middle)
        return matmul(left, self.features.jacobian(y))

    def _squared_distances(self, particles: Particles) -> SquaredDistances:
        return self.base._squared_distances(jax.vmap(self.features)(particles))


@check_arguments
class Pullback(AbstractPulledBackKernel):
    r"""A kernel on invariant features that makes SVGD equivariant.

    $$K(x, y) = J(x)^\top\, k(F(x), F(y))\, J(y), \qquad J = dF/dx$$

    For continuous groups and groups too big to enumerate. The force is

    $$\psi(x) = J(x)^\top \tfrac1n \sum_j k\, (J_j s_j + \Delta F(y_j))
      + J_j J_j^\top \nabla_2 k,$$

    where the Laplacian carries the volume element of the orbit space, $(d-1)/r$ for
    the radius. Nothing moves particles along orbits. The target must be constant on the
    orbits of F. The `Median` rule measures distances between features.

    Args:
        base: The radial kernel $k$ on features; `RBF()` takes the median rule.
        features: The feature map $F$.
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


@check_arguments
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


@check_arguments
class Moments(AbstractFeatureKernel):
    r"""The gradient kernel of a linear kernel on features, with their mean metric.

    $$K(x, y) = J(x)^\top G^{-1} J(y), \qquad
      G = \tfrac1n \sum_j J_j J_j^\top + \lambda\, \tfrac{\mathrm{tr}}{m} I$$

    Its force is the gradient of one combination of the m features,

    $$\psi(x) = \nabla_x\, a \cdot F(x), \qquad G a = \tfrac1n \sum_j J_j s_j
      + \Delta F(x_j),$$

    which vanishes when the particles satisfy Stein's identity for every feature. Near
    the target it is the Langevin flow $-\nabla \log(q/p)$, projected on the gradients
    of the features. It costs O(n), and particles do not repel each other: use it with
    `SVGD(..., langevin=...)`, whose noise moves the other directions, and some tens of
    smooth features. Equivariant; the target must be constant on the orbits of F.

    Args:
        features: The feature map $F$.
        ridge: The fraction $\lambda$ of the mean metric that is added to its diagonal.
        metric: The matrix G; by default it is measured on (256 of) the sources.

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
        jac = jax.vmap(self.features.jacobian)(some)
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

        kernel = self if self.metric is not None else self.at(prepared.points)
        means = jnp.mean(jax.vmap(generated)(prepared.points, prepared.scores), axis=0)
        weights = jax.scipy.linalg.solve(
            kernel._known_metric(means.dtype), means, assume_a="pos"
        )
        return jax.vmap(jax.grad(lambda x: matmul(self.features(x), weights)))(targets)

    def matrix(self, x: Point, y: Point) -> Float[Array, "dim dim"]:
        right = jnp.linalg.solve(self._known_metric(x.dtype), self.features.jacobian(y))
        return matmul(self.features.jacobian(x).T, right)

    def _known_metric(self, dtype: jnp.dtype) -> Metric:
        if self.metric is None:
            raise ValueError(
                "Moments without a `metric` needs particles: call "
                "kernel.at(particles) first. SVGD does so."
            )
        return self.metric.astype(dtype)
