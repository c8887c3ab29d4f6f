"""Averages of the Gaussian kernel over rotations of a vector, or shifts of phases."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import i0e, i1e
from jaxtyping import Array, Float

from equistein._products import matmul
from equistein._types import Point, Scalar
from equistein.groups import Orthogonal, SpecialOrthogonal, TorusTranslations
from equistein.kernels._base import pairwise_force
from equistein.kernels._pairs import Pairs, Sources, TargetRows, Targets
from equistein.kernels._radial import AbstractRadialKernel
from equistein.kernels.averages._base import AbstractAverage, AbstractClosedForm
from equistein.kernels.averages._clouds import quarter_turn


class VectorAverage(AbstractClosedForm):
    r"""The Haar mean of $k(x, g y) R_g$ over O(d) or SO(d), on a vector, d = 2 or 3.

    With $r = |x|$, $q = |y|$ and $A(r, q) = \int k(x, q u)\, (\hat x \cdot u)\, du$
    over unit vectors u,

    $$K(x, y) = A(r, q)\, \hat x \hat y^\top,$$

    and for SO(2) also $A(r, q)\, \hat x_\perp \hat y_\perp^\top$: the rotation that
    takes $\hat y$ to $\hat x$. For the Gaussian kernel, with
    $\kappa = r q / h^2$, A is $e^{-(r^2 + q^2)/2h^2}$ times $I_1(\kappa)$ in the plane
    and $(\cosh\kappa - \sinh(\kappa)/\kappa)/\kappa$ in space; both are computed with
    the exponential growth taken out.

    References:
        The first trigonometric moments of the von Mises and von Mises-Fisher
        distributions: Mardia and Jupp (2000), Directional Statistics, sections 3.5.4
        and 9.3.2.
    """

    group: Orthogonal | SpecialOrthogonal
    turns: bool  # whether the tangent part is there, as for SO(2)

    def radial(
        self, r: Float[Array, "*#r"], q: Float[Array, "*#q"], bandwidth: Scalar
    ) -> Float[Array, "..."]:
        """Return $A(r, q)$."""
        moment = i1e if self.group.dim == 2 else _spherical_moment
        return jnp.exp(-0.5 * ((r - q) / bandwidth) ** 2) * moment(r * q / bandwidth**2)

    def block_sum(self, targets, sources, scores, bandwidth):
        r, x_hat = _polar(targets)
        q, y_hat = _polar(sources)

        def along_q(q):
            return self.radial(r[:, None], q[None, :], bandwidth)

        # Entry (i, j) depends on q_j alone, so one product with ones has all slopes.
        gram, slope = jax.jvp(along_q, (q,), (jnp.ones_like(q),))
        pull = jnp.sum(scores * y_hat, axis=1) + (self.group.dim - 1) / q
        radial = matmul(gram, pull) + jnp.sum(slope, axis=1)
        force = radial[:, None] * x_hat
        if self.turns:
            turning = matmul(gram, jnp.sum(scores * quarter_turn(y_hat), axis=1))
            force = force + turning[:, None] * quarter_turn(x_hat)
        return force

    def value(self, x, y, bandwidth):
        (r, q), directions = _polar(jnp.stack([x, y]))
        frame = jnp.outer(*directions)
        if self.turns:
            frame += jnp.outer(*quarter_turn(directions))
        return self.radial(r, q, bandwidth) * frame

    def squared_orbit_distances(
        self, base: AbstractRadialKernel, x: Targets, y: Sources
    ) -> Pairs:
        (r, _), (q, _) = _polar(x), _polar(y)
        return (r[:, None] - q[None, :]) ** 2

    def project(self, point: Point) -> Point:
        if point.shape != (self.group.dim,):
            raise ValueError(
                f"Equivariant with rotations of a vector is in closed form for points "
                f"of shape ({self.group.dim},), but got points of shape {point.shape}. "
                "Give `num_samples` (16, say) and `key` to average over a Haar sample, "
                "or for several particles take the group PointCloud(species, dim)."
            )
        return point


def _polar(points: TargetRows) -> tuple[Float[Array, " target"], TargetRows]:
    """Return lengths, never quite zero, and directions, zero at the origin."""
    floor = float(jnp.finfo(points.dtype).tiny) ** 0.5
    lengths = jnp.sqrt(jnp.sum(points**2, axis=1) + floor)
    return lengths, points / lengths[:, None]


def _spherical_moment(kappa: Array) -> Array:
    r"""Return $e^{-\kappa} (\cosh\kappa - \sinh(\kappa)/\kappa)/\kappa$."""
    small = kappa < 0.5
    large = jnp.where(small, 1.0, kappa)
    decay = jnp.exp(-2 * large)
    far = ((1 + decay) - (1 - decay) / large) / (2 * large)
    square = jnp.where(small, kappa, 0.0) ** 2
    # The Taylor series, since the two terms above cancel near zero.
    series = 1 / 45360 + square / 3991680
    series = 1 / 3 + square * (1 / 30 + square * (1 / 840 + square * series))
    near = kappa * jnp.exp(-kappa) * series
    return jnp.where(small, near, far)


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
        kernel = lambda x, y: self._value(base, x, y)
        return pairwise_force(kernel, targets, sources, scores)

    def matrix(self, base, x, y):
        return self._value(base, x, y) * jnp.eye(x.size, dtype=x.dtype)

    def squared_orbit_distances(self, base, x: Targets, y: Sources) -> Pairs:
        def squared(x, y):
            rest, radii, overlap = self._parts(base, x, y)
            return jnp.maximum(rest + 2 * (radii - overlap), 0)

        return jax.vmap(jax.vmap(squared, (None, 0)), (0, None))(x, y)

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
