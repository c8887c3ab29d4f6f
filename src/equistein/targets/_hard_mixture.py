"""A mixture whose modes differ in weight and width, too far apart for plain chains."""

import jax
import jax.numpy as jnp
import jax.random as jr
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Int

from equistein._check_arguments import accept_integer_key, check_arguments
from equistein._numbers import check_integers
from equistein._types import AnyKey, Particles, Point, Scalar
from equistein.groups import Trivial
from equistein.targets._base import AbstractTarget, as_tuples

_WEIGHTS = (0.4, 0.3, 0.2, 0.1)


@check_arguments
class HardMixture(AbstractTarget):
    r"""Normals of several weights and widths on a circle of the first two axes.

    $$\log p(x) = \log \sum_k \pi_k\, w_k^{-d} \exp\bigl(-|x - m_k|^2 / 2 w_k^2\bigr),
      \qquad \log Z = \tfrac d2 \log 2\pi$$

    Four modes have the weights .4, .3, .2 and .1, and widths from 1 to `width_ratio` in
    equal ratios: the narrowest is the heaviest. By default, paths between neighbors
    climb 28 nats or more: chains stay in their mode. Tempered, mode k has the weight
    $\pi_k^\beta w_k^{d (1 - \beta)}$: where d is large, hot chains see only the widest
    modes, and tempering fails. No symmetry is declared.

    Args:
        dim: The dimension $d$, from 2 to 50.
        width_ratio: The largest width over the smallest, at least 1.
        radius: The distance of the modes $m_k$ from the origin.

    References:
        Woodard, Schmidler and Huber (2009), Sufficient conditions for torpid mixing of
        parallel and simulated tempering.
    """

    dim: int
    _widths: tuple[float, ...]
    _means: tuple[tuple[float, ...], ...]
    radius: float

    def __init__(
        self, dim: int = 20, *, width_ratio: float = 1.4, radius: float = 15.0
    ):
        if not 2 <= dim <= 50:
            raise ValueError(
                f"HardMixture needs `dim`, an integer from 2 to 50, but got {dim!r}."
            )
        if not width_ratio >= 1 or not 0 < radius < jnp.inf:
            raise ValueError(
                "HardMixture needs `width_ratio` >= 1 and a positive `radius`, but got "
                f"width_ratio={width_ratio!r} and radius={radius!r}."
            )
        self.dim, num = dim, len(_WEIGHTS)
        self.radius = float(radius)
        self._widths = as_tuples(jnp.geomspace(1.0, float(width_ratio), num))
        angles = jnp.linspace(0.0, 2 * jnp.pi, num, endpoint=False)
        circle = self.radius * jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1)
        self._means = as_tuples(jnp.pad(circle, ((0, 0), (0, dim - 2))))

    @property
    def weights(self) -> Float[Array, " mode"]:
        """The weight of each mode."""
        return jnp.asarray(_WEIGHTS, float)

    @property
    def widths(self) -> Float[Array, " mode"]:
        """The width of each mode."""
        return jnp.asarray(self._widths, float)

    @property
    def means(self) -> Float[Array, "mode dim"]:
        """The center of each mode."""
        return jnp.asarray(self._means, float)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.dim,)

    @property
    def group(self) -> Trivial:
        return Trivial()

    @property
    def log_normalizer(self) -> Scalar:
        r"""$\log Z = \tfrac d2 \log 2\pi$."""
        return self.dim / 2 * jnp.log(2 * jnp.pi)

    def _log_density(self, point: Point) -> Scalar:
        return logsumexp(self._terms(point))

    @accept_integer_key
    def sample(self, key: AnyKey, num: int) -> Particles:
        check_integers("`sample`", num=num)
        mode_key, normal_key = jr.split(key)
        modes = jr.categorical(mode_key, jnp.log(self.weights), shape=(num,))
        normal = jr.normal(normal_key, (num, self.dim), self.means.dtype)
        return self.means[modes] + self.widths[modes][:, None] * normal

    @accept_integer_key
    def start(self, key: AnyKey, num: int) -> Particles:
        """Draw points from a normal distribution as wide as the circle."""
        check_integers("`sample`", num=num)
        return self.radius * jr.normal(key, (num, self.dim), self.means.dtype)

    def modes(self, points: Particles) -> Int[Array, " n"]:
        """Return the index of the most probable mode of each point."""
        return jnp.argmax(jax.vmap(self._terms)(points), axis=1)

    def _terms(self, point: Point) -> Float[Array, " mode"]:
        parts = (self.weights, self.widths, self.means)
        weights, widths, means = (part.astype(point.dtype) for part in parts)
        squares = jnp.sum((point[None] - means) ** 2, axis=1)
        heights = jnp.log(weights) - self.dim * jnp.log(widths)
        return heights - squares / (2 * widths**2)
