"""What the kernels on invariant features share."""

import abc
from typing import TypeAlias

import equinox as eqx
import jax
from jaxtyping import Array, Float

from equistein._products import einsum, matmul
from equistein._types import Features, LogDensity, Particles, Point
from equistein.features import AbstractFeatures, jacobian
from equistein.groups import check_invariance
from equistein.kernels._bandwidth import SquaredDistances
from equistein.kernels._base import AbstractKernel
from equistein.kernels._derived import AbstractDerivedKernel
from equistein.kernels._pairs import (
    centered,
    flatten,
    map_blocks,
    SourceRows,
    Sources,
    TargetRows,
    Targets,
)

Metric: TypeAlias = Float[Array, "feature feature"]
Metrics: TypeAlias = Float[Array, "source feature feature"]


class PreparedFeatures(eqx.Module):
    """The features F(y) of each source, its pushed score and its metric."""

    features: SourceRows
    pushed: SourceRows
    metric: Metrics


class AbstractFeatureKernel(AbstractKernel):
    """A kernel with the symmetry of its features."""

    features: eqx.AbstractVar[AbstractFeatures]

    def __check_init__(self):
        if not isinstance(self.features, AbstractFeatures):
            raise ValueError(
                f"{type(self).__name__} needs `features`, such as Radius(), but got "
                f"{self.features!r}."
            )

    def project(self, point: Point) -> Point:
        return self.features.group(point.shape).project(point)

    def check(self, log_density: LogDensity, points: Particles) -> None:
        check_invariance(log_density, self.features.group(points.shape[1:]), points)


class AbstractPulledBackKernel(AbstractFeatureKernel, AbstractDerivedKernel):
    r"""A kernel $J(x)^\top\, B(F(x), F(y))\, J(y)$ with $J = dF/dx$.

    Its Stein force is pulled back from features, and depends on a source through
    F(y), the pushed score $p = J s + \Delta F$ and the metric $M = J J^\top$.
    """

    @abc.abstractmethod
    def _block_sum(
        self,
        targets: TargetRows,
        sources: SourceRows,
        pushed: SourceRows,
        metric: Metrics,
    ) -> TargetRows:
        """Return the sum of the Stein terms over the sources, on features."""

    @abc.abstractmethod
    def _feature_matrix(self, x: Features, y: Features) -> Metric:
        """Return $B(F(x), F(y))$."""

    def prepare(self, sources: Sources, scores: Sources) -> PreparedFeatures:
        jac = jax.vmap(lambda y: jacobian(self.features, y))(sources)
        pushed = einsum("nfd,nd->nf", jac, flatten(scores))
        pushed = pushed + jax.vmap(self.features.laplacian)(sources)
        metric = einsum("nfd,ngd->nfg", jac, jac)
        return PreparedFeatures(jax.vmap(self.features)(sources), pushed, metric)

    def force(self, targets: Targets, prepared: PreparedFeatures) -> Targets:
        places, pushed, metric = prepared.features, prepared.pushed, prepared.metric
        there, pull_back = jax.vmap(lambda x: jax.vjp(self.features, x))(targets)
        here, places = centered(there, places, places)
        total = map_blocks(
            lambda rows: self._block_sum(rows, places, pushed, metric),
            here,
            len(places),
        )
        (force,) = jax.vmap(lambda vjp, f: vjp(f))(pull_back, total / len(places))
        return force

    def matrix(self, x: Point, y: Point) -> Float[Array, "dim dim"]:
        middle = self._feature_matrix(self.features(x), self.features(y))
        return matmul(
            matmul(jacobian(self.features, x).T, middle), jacobian(self.features, y)
        )

    def _squared_distances(self, particles: Particles) -> SquaredDistances:
        return self.base._squared_distances(jax.vmap(self.features)(particles))
