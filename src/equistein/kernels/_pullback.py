"""The kernel of invariant features, pulled back to the points."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein._types import LogDensity, Particles, Point, Scalar
from equistein.features import AbstractFeatures, jacobian
from equistein.groups import check_invariance
from equistein.kernels._bandwidth import AbstractBandwidth
from equistein.kernels._base import (
    AbstractKernel,
    centred,
    flatten,
    squared_distances,
)
from equistein.kernels._blocks import map_blocks
from equistein.kernels._radial import AbstractRadialKernel


class Pullback(AbstractKernel):
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

    def __init__(self, base: AbstractRadialKernel, features: AbstractFeatures):
        if not isinstance(base, AbstractRadialKernel):
            raise ValueError(
                "Pullback needs `base`, a kernel of the distance such as RBF(0.2), but "
                f"got {base!r}."
            )
        if not isinstance(features, AbstractFeatures):
            raise ValueError(
                f"Pullback needs `features`, such as Radius(), but got {features!r}."
            )
        self.base = base
        self.features = features

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
        here, there_sources = centred(there, jax.vmap(self.features)(sources))
        total = map_blocks(
            lambda rows: self._block(rows, there_sources, pushed, metric),
            here,
            len(sources),
        )
        (force,) = jax.vmap(lambda vjp, f: vjp(f))(pull_back, total / len(sources))
        return force

    def _block(
        self,
        targets: Float[Array, "target feature"],
        sources: Float[Array, "source feature"],
        pushed: Float[Array, "source feature"],
        metric: Float[Array, "source feature feature"],
    ) -> Float[Array, "target feature"]:
        r"""Return the sum over sources of $k p_j + M_j \nabla_2 k$ on features."""
        value, slope = self.base.profile(squared_distances(targets, sources))
        num, size = sources.shape
        # grad_2 k = 2 kappa' (f_j - f_i): one product with M_j f_j, one with M_j.
        bent = jnp.einsum("nfg,ng->nf", metric, sources)
        sums = slope @ jnp.concatenate([bent, metric.reshape(num, -1)], axis=1)
        spread = jnp.einsum(
            "nfg,ng->nf", sums[:, size:].reshape(-1, size, size), targets
        )
        return value @ pushed + 2 * (sums[:, :size] - spread)

    def matrix(self, x: Point, y: Point) -> Float[Array, "dim dim"]:
        value = self.base(self.features(x), self.features(y))
        return value * jacobian(self.features, x).T @ jacobian(self.features, y)

    @property
    def rule(self) -> AbstractBandwidth | None:
        return self.base.rule

    def length(self, particles: Particles) -> Scalar:
        return self.base.length(jax.vmap(self.features)(particles))

    def with_length(self, length: Scalar) -> "Pullback":
        return eqx.tree_at(lambda k: k.base, self, self.base.with_length(length))

    def project(self, point: Point) -> Point:
        return self.features.group(point.shape).project(point)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        self.features.group(shape)

    def check_target(self, log_density: LogDensity, points: Particles) -> None:
        check_invariance(log_density, self.features.group(points.shape[1:]), points)
