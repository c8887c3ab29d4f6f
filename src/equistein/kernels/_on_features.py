"""What the kernels on invariant features share."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein._types import Features, LogDensity, Particles, Point, Scalar
from equistein.features import AbstractFeatures, jacobian
from equistein.groups import check_invariance
from equistein.kernels._bandwidth import AbstractBandwidth
from equistein.kernels._base import AbstractKernel
from equistein.kernels._blocks import map_blocks
from equistein.kernels._distances import centered, flatten
from equistein.kernels._radial import AbstractRadialKernel


class AbstractFeatureKernel(AbstractKernel):
    r"""A kernel $J(x)^\top\, B(F(x), F(y))\, J(y)$ with $J = dF/dx$.

    Its Stein force is pulled back from features, and depends on a source through
    F(y), the pushed score $p = J s + \Delta F$ and the metric $M = J J^\top$.
    """

    base: eqx.AbstractVar[AbstractRadialKernel]
    features: eqx.AbstractVar[AbstractFeatures]

    @abc.abstractmethod
    def _block_sum(
        self,
        targets: Float[Array, "target feature"],
        sources: Float[Array, "source feature"],
        pushed: Float[Array, "source feature"],
        metric: Float[Array, "source feature feature"],
    ) -> Float[Array, "target feature"]:
        """Return the sum of the Stein terms over the sources, as a feature vector."""

    @abc.abstractmethod
    def _feature_matrix(
        self, x: Features, y: Features
    ) -> Float[Array, "feature feature"]:
        """Return $B(F(x), F(y))$."""

    def stein_force(
        self,
        targets: Float[Array, "target *shape"],
        sources: Float[Array, "source *shape"],
        scores: Float[Array, "source *shape"],
    ) -> Float[Array, "target *shape"]:
        jac = jax.vmap(lambda y: jacobian(self.features, y))(sources)
        pushed = jnp.einsum("nfd,nd->nf", jac, flatten(scores))
        pushed = pushed + jax.vmap(self.features.laplacian)(sources)
        metric = jnp.einsum("nfd,ngd->nfg", jac, jac)
        there, pull_back = jax.vmap(lambda x: jax.vjp(self.features, x))(targets)
        here, there_sources = centered(there, jax.vmap(self.features)(sources))
        total = map_blocks(
            lambda rows: self._block_sum(rows, there_sources, pushed, metric),
            here,
            len(sources),
        )
        (force,) = jax.vmap(lambda vjp, f: vjp(f))(pull_back, total / len(sources))
        return force

    def matrix(self, x: Point, y: Point) -> Float[Array, "dim dim"]:
        middle = self._feature_matrix(self.features(x), self.features(y))
        return jacobian(self.features, x).T @ middle @ jacobian(self.features, y)

    @property
    def bandwidth(self) -> float | Scalar | AbstractBandwidth:
        """That of the kernel on features."""
        return self.base.bandwidth

    def with_bandwidth(
        self, bandwidth: float | Scalar | AbstractBandwidth
    ) -> "AbstractFeatureKernel":
        return eqx.tree_at(lambda k: k.base, self, self.base.with_bandwidth(bandwidth))

    def project(self, point: Point) -> Point:
        return self.features.group(point.shape).project(point)

    def check(self, log_density: LogDensity, points: Particles) -> None:
        check_invariance(log_density, self.features.group(points.shape[1:]), points)

    def _squared_distances(
        self, particles: Float[Array, "n *shape"]
    ) -> Float[Array, "n n"]:
        return self.base._squared_distances(jax.vmap(self.features)(particles))


def check_parts(
    name: str, base: AbstractRadialKernel, features: AbstractFeatures
) -> None:
    """Raise `ValueError` unless the parts of a kernel are what they should be.

    Raises:
        ValueError: If `base` is not radial or `features` not a feature map.
    """
    if not isinstance(base, AbstractRadialKernel):
        raise ValueError(
            f"{name} needs `base`, a kernel of the distance such as RBF(0.2), but got "
            f"{base!r}."
        )
    check_features(name, features)


def check_features(name: str, features: AbstractFeatures) -> None:
    """Raise `ValueError` unless `features` is a feature map.

    Raises:
        ValueError: If it is not.
    """
    if not isinstance(features, AbstractFeatures):
        raise ValueError(
            f"{name} needs `features`, such as Radius(), but got {features!r}."
        )
