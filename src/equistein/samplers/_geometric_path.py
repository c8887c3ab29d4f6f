"""The geometric path from a reference to a density."""

import abc
import math
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jax.core import Tracer
from jaxtyping import Array, Float

from equistein._arrays import on_device
from equistein._check_arguments import accept_integer_key, check_arguments
from equistein._numbers import check_integers, check_positive
from equistein._types import Key, LogDensity, Particles, Point, Scalar
from equistein.kernels import Preconditioner
from equistein.samplers._steps import identity


@runtime_checkable
class Subspace(Protocol):
    """What particles live on: it projects points onto itself."""

    def project(self, point: Point, /) -> Point: ...


class AbstractReference(eqx.Module):
    """A normalized density with exact samples: where log Z is known to be 0."""

    @abc.abstractmethod
    def log_density(self, point: Point) -> Scalar:
        """Return the normalized log density of one point."""

    @abc.abstractmethod
    def sample(self, key: Key, num: int) -> Particles:
        """Draw `num` independent points from the density."""

    def project(self, point: Point) -> Point:
        """Return the nearest point of the subspace that the density lives on."""
        return point


class Projected(eqx.Module):
    """The subspace that a function projects onto."""

    project: Callable[[Point], Point]


@check_arguments
class Normal(AbstractReference):
    r"""The isotropic normal density on a subspace, normalized there.

    $$\log p(x) = -\frac{|x - c|^2}{2 \sigma^2} - \frac k2 \log 2 \pi \sigma^2$$

    k is the dimension of the subspace: of the space itself, or (n - 1) d for n
    particles with their center of mass at the origin.

    Args:
        center: The mean $c$, on the subspace.
        scale: The standard deviation $\sigma > 0$ of a coordinate.
        subspace: What projects onto it with a method `project`, such as `PointCloud`.
    """

    center: Point
    scale: Scalar
    subspace: Subspace
    dim: int | Scalar

    def __init__(
        self,
        center: Point,
        scale: float | Scalar,
        subspace: Subspace = Projected(identity),  # noqa: B008
    ):
        self.dim, gap = _dimension_and_gap(subspace.project, center)
        if not isinstance(scale, Tracer):
            check_positive("Normal", scale=scale)
            if not gap <= 1e-5 * float(scale):
                raise ValueError(
                    f"Normal needs a `center` that {subspace} leaves where it is, such "
                    "as the origin."
                )
        self.center = center
        self.scale = on_device(scale).astype(center.dtype)
        self.subspace = subspace

    def log_density(self, point: Point) -> Scalar:
        center, scale = (c.astype(point.dtype) for c in (self.center, self.scale))
        gap = self.subspace.project(point) - center
        constant = 0.5 * self.dim * jnp.log(2 * jnp.pi * scale**2)
        return -0.5 * jnp.sum((gap / scale) ** 2) - constant

    @accept_integer_key
    def sample(self, key: Key, num: int) -> Particles:
        check_integers("`sample`", num=num)
        noise = jr.normal(key, (num, *self.center.shape), self.center.dtype)
        noise = jax.vmap(self.subspace.project)(noise)
        return self.center[None] + self.scale * noise

    def project(self, point: Point) -> Point:
        return self.subspace.project(point)


class FittedNormal(AbstractReference):
    """The normal density of a preconditioner, learned from the target's chains.

    Coordinates with a finite period are uniform, and independent of the others.
    """

    metric: Preconditioner
    periods: Float[Array, " dim"] | None = None

    def refit(self, metric: Preconditioner) -> "FittedNormal":
        """Return the reference with the center and the covariance of a metric."""
        if self.periods is not None:
            metric = metric.decoupled(jnp.isfinite(self.periods))
        return FittedNormal(metric, self.periods)

    def log_density(self, point: Point) -> Scalar:
        if self.periods is None:
            return self.metric.log_density(point)
        periods = self.periods.astype(point.dtype)
        wraps = jnp.isfinite(periods)  # where the metric's density is N(c, 1)
        uniform = 0.5 * math.log(2 * math.pi) - jnp.log(jnp.where(wraps, periods, 1))
        normal = self.metric.log_density(jnp.where(wraps, self.metric.center, point))
        return normal + jnp.sum(jnp.where(wraps, uniform, 0))

    @accept_integer_key
    def sample(self, key: Key, num: int) -> Particles:
        points = self.metric.sample(key, num)
        if self.periods is None:
            return points
        wraps, periods = jnp.isfinite(self.periods), self.periods.astype(points.dtype)
        chances = jax.scipy.stats.norm.cdf(points - self.metric.center[None])
        uniform = jnp.where(wraps, periods, 1)[None] * chances
        return jnp.where(wraps[None], uniform, points)


def fit_normal(
    particles: Particles, project: Callable[[Point], Point], wider: float
) -> AbstractReference:
    """Return a normal density with the mean of some particles, `wider` than them.

    It has their widths, or, where they have several axes or live on a subspace, their
    mean spread, no wider than theirs.
    """
    if project is identity and particles.ndim == 2:
        metric = Preconditioner.by_width(particles)
        return FittedNormal(metric.scaled(jnp.full_like(metric.center, wider)))
    particles = jax.vmap(project)(particles)
    center = jnp.mean(particles, axis=0)
    squares = jnp.sum((particles - center[None]) ** 2) / len(particles)
    scale = jnp.sqrt(squares / _dimension_and_gap(project, center)[0])
    return Normal(center, scale, Projected(project))


def _dimension_and_gap(project: Callable, center: Point) -> tuple[Any, Any]:
    """Return the dimension of a subspace, and how far a point is from it."""
    if project is identity:
        return math.prod(center.shape), 0.0
    dim, gap = _trace_and_gap(project, center)
    return (dim, gap) if isinstance(dim, Tracer) else (round(float(dim)), float(gap))


@eqx.filter_jit
def _trace_and_gap(project: Callable, center: Point) -> tuple[Scalar, Scalar]:
    trace = jnp.trace(jax.jacfwd(project)(center).reshape(center.size, -1))
    return trace, jnp.max(jnp.abs(project(center) - center))


class PathWalker(eqx.Module):
    """A point with the log densities and scores of the reference and the density there.

    Nothing in it depends on a temperature, so it stays valid at another one.
    """

    point: Point
    reference_value: Scalar
    reference_score: Point
    value: Scalar
    score: Point

    @property
    def log_ratio(self) -> Float[Array, " *batch"]:
        r"""The $\log p(x) / b(x)$, the slope of the path's log density in $\beta$."""
        return self.value - self.reference_value


class Flat(eqx.Module):
    r"""No reference: the path is $p^\beta$, and nothing is known of its hot end."""

    def log_density(self, point: Point) -> Scalar:
        return jnp.zeros((), point.dtype)


@check_arguments
class GeometricPath(eqx.Module):
    r"""The geometric path $b(x)^{1 - \beta} p(x)^\beta$, for $\beta$ from 0 to 1.

    Where p is zero, so is every density of the path with $\beta > 0$.
    """

    log_density: LogDensity
    reference: AbstractReference | Flat

    def evaluate(self, point: Point) -> PathWalker:
        """Return the walker at a point; a value that is not finite becomes -inf."""
        walker = self.evaluate_raw(point)
        value = jnp.where(jnp.isfinite(walker.value), walker.value, -jnp.inf)
        return eqx.tree_at(lambda w: w.value, walker, value)

    def evaluate_raw(self, point: Point) -> PathWalker:
        """Return the walker at a point; its log density may be NaN or infinite."""
        of_reference = self.of_reference(point)
        of_density = jax.value_and_grad(self.log_density)(point)
        return PathWalker(point, *of_reference, *of_density)

    @accept_integer_key
    def start(self, key: Key, num: int, dtype: Any = None) -> PathWalker:
        """Return walkers at samples of the reference, of its type or of another."""
        assert not isinstance(self.reference, Flat)
        points = self.reference.sample(key, num)
        return jax.vmap(self.evaluate)(points.astype(dtype or points.dtype))

    def of_reference(self, point: Point) -> tuple[Scalar, Point]:
        """Return the log density and the score of the reference."""
        return jax.value_and_grad(self.reference.log_density)(point)

    def tempered(self, walker: PathWalker, beta: Scalar) -> tuple[Scalar, Point]:
        r"""Return the log density and the score at $\beta$, where a walker stands."""
        value = (1 - beta) * walker.reference_value + beta * walker.value
        return value, (1 - beta) * walker.reference_score + beta * walker.score

    def at(self, beta: Scalar) -> LogDensity:
        r"""Return the log density at $\beta$ as a function of one point."""

        def log_density(point: Point) -> Scalar:
            reference = self.reference.log_density(point)
            return (1 - beta) * reference + beta * self.log_density(point)

        return log_density
