"""The average of the Gaussian kernel on circles over common shifts of all phases."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import i0e
from jaxtyping import Array, Float

from equistein._types import Point, Scalar
from equistein.groups import TorusTranslations
from equistein.kernels._pairs import map_blocks, Pairs, Sources, Targets
from equistein.kernels._radial import AbstractRadialKernel
from equistein.kernels.averages._base import AbstractAverage


class TorusAverage(AbstractAverage):
    r"""The mean of a `PeriodicRBF` over the shifts of all phases together.

    With the phases as complex numbers $z_i$ on their circles of radius $r_i$ and
    $c = \sum_i z_i(x)\, \overline{z_i(y)} / h^2$,

    $$\frac{1}{2\pi} \int k(x, g_t y)\, dt
      = e^{-\sum_i r_i^2 / h^2}\, I_0(|c|),$$

    times the Gaussian kernel of the coordinates that do not wrap. Shifts leave scores
    as they are, so this scalar kernel times the identity is equivariant; its force has
    no component along the shift.
    """

    group: TorusTranslations

    def force(self, base, targets, sources, scores):
        def term(x, y, score):
            value, slope = jax.value_and_grad(self._value, argnums=2)(base, x, y)
            return value * score + slope

        def block(rows):
            each = jax.vmap(jax.vmap(term, (None, 0, 0)), (0, None, None))
            return jnp.sum(each(rows, sources, scores), axis=1)

        total = map_blocks(block, targets, sources.size)
        return total / len(sources)

    def matrix(self, base, x, y):
        return self._value(base, x, y) * jnp.eye(x.size, dtype=x.dtype)

    def squared_orbit_distances(self, base, x: Targets, y: Sources) -> Pairs:
        def squared(x, y):
            rest, radii, overlap = self._parts(base, x, y)
            return jnp.maximum(rest + 2 * (radii - overlap), 0)

        return jax.vmap(jax.vmap(squared, (None, 0)), (0, None))(x, y)

    def project(self, point: Point) -> Point:
        return self.group.project(point)

    def _value(self, base: AbstractRadialKernel, x: Point, y: Point) -> Scalar:
        rest, radii, overlap = self._parts(base, x, y)
        inverse = 1 / base.fixed_bandwidth(x) ** 2
        decay = jnp.exp(-inverse * (0.5 * rest + radii - overlap))
        return decay * i0e(inverse * overlap)

    def _parts(
        self, base: AbstractRadialKernel, x: Point, y: Point
    ) -> tuple[Scalar, Scalar, Float[Array, ""]]:
        r"""Return what does not wrap, squared, $\sum r^2$ and $|z(x) \bar z(y)|$."""
        wraps = np.isfinite(self.group.periods)
        (a, b), (c, d) = base.embed(x[None])[:, 0], base.embed(y[None])[:, 0]
        rest = jnp.sum(jnp.where(wraps, 0, a - c) ** 2)
        real = jnp.sum(jnp.where(wraps, a * c + b * d, 0))
        imaginary = jnp.sum(jnp.where(wraps, b * c - a * d, 0))
        floor = float(jnp.finfo(x.dtype).tiny) ** 0.5
        radii = jnp.sum(jnp.where(wraps, a**2 + b**2, 0))
        return rest, radii, jnp.sqrt(real**2 + imaginary**2 + floor)
