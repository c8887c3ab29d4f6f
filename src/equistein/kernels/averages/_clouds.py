"""Averages of the Gaussian kernel over clouds, in the plane and in space."""

import abc
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import i0e, i1e
from jaxtyping import Array, Float

from equistein._products import einsum, matmul
from equistein._types import Scalar
from equistein.groups import AbstractCloud
from equistein.kernels._pairs import (
    Pairs,
    SourceRows,
    Sources,
    squared_norms,
    TargetRows,
    Targets,
)
from equistein.kernels._radial import AbstractRadialKernel
from equistein.kernels.averages._base import AbstractClosedForm

MAX_PERMUTATIONS = 120  # five like particles


def _ramp(t: np.ndarray) -> np.ndarray:
    """Return the polynomial from 0 to 1 whose slope is 140 t^3 (1 - t)^3."""
    return t**4 * (35 - 84 * t + 70 * t**2 - 20 * t**3)


# Gauss-Legendre nodes drawn towards both ends, where narrow kernels have their peaks.
_T, _WEIGHTS = np.polynomial.legendre.leggauss(64)
_T, _WEIGHTS = (_T + 1) / 2, _WEIGHTS / 2
_WEIGHTS = _WEIGHTS * 140 * (_T * (1 - _T)) ** 3
_RHO, _REST = _ramp(_T), _ramp(1 - _T)
_BROAD = 20.0  # the sum of the lesser singular values up to which the nodes do

Matrix = Float[Array, "3 3"]


class ProperSVD(NamedTuple):
    """Rotations and singular values, the last with the sign of the determinant."""

    left: Matrix
    kappa: Float[Array, "3"]
    right: Matrix

    @property
    def rotation(self) -> Matrix:
        r"""The rotation R of the largest $\mathrm{tr}(R^\top M)$, the sum of kappa."""
        return matmul(self.left, self.right)

    def mirror_image(self) -> "ProperSVD":
        """Return that of $-M$."""
        signs = jnp.array([1, 1, -1], self.kappa.dtype)
        return ProperSVD(-self.left * signs[None, :], self.kappa * signs, self.right)


def proper_svd(matrix: Matrix) -> ProperSVD:
    """Return the singular value decomposition with rotations."""
    left, kappa, right = jnp.linalg.svd(matrix)
    signs = jnp.sign(jnp.linalg.det(left)), jnp.sign(jnp.linalg.det(right))
    left = left.at[:, 2].multiply(signs[0])
    right = right.at[2].multiply(signs[1])
    return ProperSVD(left, kappa.at[2].multiply(signs[0] * signs[1]), right)


@jax.custom_jvp
def rotation_moments(
    matrix: Matrix, shift: Scalar, svd: ProperSVD, peak: Scalar
) -> tuple[Scalar, Matrix]:
    r"""Return $\int e^{\mathrm{tr}(R^\top M) - a} dR$ and the same with $R$ inside.

    With the singular values $\kappa_1 \ge \kappa_2 \ge |\kappa_3|$ of M (the last with
    the sign of $\det M$) and $\rho$ the fraction of a unit quaternion in its first and
    last component,

    $$\int e^{\mathrm{tr}(R^\top M)} dR = \int_0^1 I_0(\rho(\kappa_1 + \kappa_2))\,
      I_0((1 - \rho)(\kappa_1 - \kappa_2))\, e^{(2\rho - 1) \kappa_3}\, d\rho,$$

    by quadrature with the exponential growth taken out, good to 1e-5 for $\kappa_1$ up
    to $10^7$ and better where no two singular values are zero. The derivative is made
    of the second moments, so it is finite where singular values coincide.

    Args:
        matrix: The 3 x 3 matrix M.
        shift: The number $a$, at least the sum of the singular values.
        svd: The decomposition of M.
        peak: The sum of the singular values less $a$, the largest exponent. The value
            is as accurate as this: where both are large, find it without cancellation.

    References:
        Prentice (1986), Orientation statistics without parametric assumptions; Mardia
        and Jupp (2000), Directional Statistics, section 13.2.3.
    """
    del matrix, shift  # what they say beyond the others is in the derivative
    value, first = _diagonal_moments(svd.kappa, peak)
    return value, matmul(svd.left * first[None, :], svd.right)


@rotation_moments.defjvp
def _derivative(primals, tangents):
    (_, _, (left, kappa, right), peak), (change, shifted, _, _) = primals, tangents
    value, first = _diagonal_moments(kappa, peak)
    moment = matmul(left * first[None, :], right)
    diagonal, same, swapped = _second_moments(kappa, peak)
    inner = matmul(matmul(left.T, change), right.T)
    bent = jnp.diag(matmul(diagonal, jnp.diagonal(inner)))
    bent = bent + same * inner + swapped * inner.T
    d_value = jnp.sum(moment * change) - value * shifted
    d_moment = matmul(matmul(left, bent), right) - moment * shifted
    return (value, moment), (d_value, d_moment)


def _bessels(kappa, peak):
    """Return the nodes, the weights, and the scaled I0, I1 and I1/x at each node."""
    rho, rest = jnp.asarray(_RHO, kappa.dtype), jnp.asarray(_REST, kappa.dtype)
    # Narrow distributions live where the rest is small: draw all nodes towards there.
    narrow = 1 / (1 + jax.lax.stop_gradient(kappa[1] + kappa[2]) / _BROAD)
    spread = rho + narrow * rest
    rho, rest = rho / spread, narrow * rest / spread
    a, b = rho * (kappa[0] + kappa[1]), rest * (kappa[0] - kappa[1])
    # By rounding it may be positive, and then overflow, for points far away.
    growth = jnp.minimum(peak, 0) - 2 * rest * (kappa[1] + kappa[2])
    weights = jnp.asarray(_WEIGHTS, kappa.dtype) * narrow / spread**2
    weights = weights * jnp.exp(growth)
    at_a, at_b = ((i0e(x), i1e(x), _i1e_over(x)) for x in (a, b))
    return rho, rest, weights, at_a, at_b


def _i1e_over(x):
    """Return $e^{-x} I_1(x) / x$ for $x >= 0$."""
    small = x < 1e-3
    return jnp.where(small, (0.5 - x / 2), i1e(x) / jnp.where(small, 1, x))


def _diagonal_moments(kappa, peak) -> tuple[Scalar, Float[Array, "3"]]:
    """Return the normalizer and the moments of $R_{11}, R_{22}, R_{33}$."""
    rho, rest, weights, (a0, a1, _), (b0, b1, _) = _bessels(kappa, peak)
    along, across = matmul(weights, rho * a1 * b0), matmul(weights, rest * a0 * b1)
    last = matmul(weights, (rho - rest) * a0 * b0)
    return matmul(weights, a0 * b0), jnp.stack([along + across, along - across, last])


def _second_moments(kappa, peak):
    r"""Return the moments of $R_{ii} R_{jj}$, of $R_{ij}^2$ and of $R_{ij} R_{ji}$.

    The last two for $i \ne j$, with zeros on the diagonal. All others vanish.
    """
    rho, rest, weights, (a0, a1, a2), (b0, b1, b2) = _bessels(kappa, peak)
    mixed = rho * rest
    # R_11 and R_22 are rho cos 2alpha +- (1 - rho) cos 2beta, R_33 is 2 rho - 1.
    near = matmul(weights, rho**2 * (a0 - a2) * b0)
    far = matmul(weights, rest**2 * (b0 - b2) * a0)
    both = matmul(2 * weights, mixed * a1 * b1)
    up = matmul(weights, (rho - rest) * rho * a1 * b0)
    down = matmul(weights, (rho - rest) * rest * a0 * b1)
    last = matmul(weights, (rho - rest) ** 2 * a0 * b0)
    diagonal = jnp.array(
        [
            [near + far + both, near - far, up + down],
            [near - far, near + far - both, up - down],
            [up + down, up - down, last],
        ]
    )
    # Squares of products of two components of the quaternion.
    q03, q12 = matmul(weights, rho**2 * a2 * b0), matmul(weights, rest**2 * b2 * a0)
    q02 = matmul(weights, mixed * (a0 + a1) * (b0 - b1))
    q13 = matmul(weights, mixed * (a0 - a1) * (b0 + b1))
    q01 = matmul(weights, mixed * (a0 + a1) * (b0 + b1))
    q23 = matmul(weights, mixed * (a0 - a1) * (b0 - b1))
    same = _hollow(q12 + q03, q13 + q02, q23 + q01)
    return diagonal, same, _hollow(q12 - q03, q13 - q02, q23 - q01)


def _hollow(first_second, first_third, second_third) -> Matrix:
    zero = jnp.zeros_like(first_second)
    return jnp.array(
        [
            [zero, first_second, first_third],
            [first_second, zero, second_third],
            [first_third, second_third, zero],
        ]
    )


class AbstractCloudAverage(AbstractClosedForm):
    """A mean over rotations of a point cloud and permutations of like particles."""

    group: AbstractCloud

    @abc.abstractmethod
    def copies(self, rows: SourceRows) -> Float[Array, "copy dim"]:
        """Return the enumerated copies of the rows, one after the other."""

    @abc.abstractmethod
    def overlaps(self, x: TargetRows, copies: SourceRows) -> Pairs:
        """Return the largest inner products over the rotations of the copies."""

    def squared_orbit_distances(
        self, base: AbstractRadialKernel, x: Targets, y: Sources
    ) -> Pairs:
        rows, others = self.rows(x), self.rows(y)
        overlaps = self.overlaps(rows, self.copies(others))
        largest = jnp.max(overlaps.reshape(len(x), -1, len(y)), axis=1)
        return jnp.maximum(squared_norms(rows, others) - 2 * largest, 0)


def _permute(group: AbstractCloud, rows: SourceRows) -> Float[Array, "copy dim"]:
    """Return all permutations of flattened clouds, one after the other."""
    clouds = rows.reshape(len(rows), -1, group.dim)
    copies = jnp.swapaxes(clouds[:, group.permutations()], 0, 1)
    return copies.reshape(-1, rows.shape[1])


class PlanarAverage(AbstractCloudAverage):
    r"""The Haar mean of $k(x, g y) R_g$ over `PointCloud` in the plane.

    With particles as complex numbers, $z, w \in \mathbb C^n$, and
    $c = \sum_i z_i \bar w_i = |c|\, u$, the mean over SO(2) is

    $$K(z, w)\, v = e^{-(|z|^2 + |w|^2)/2h^2}\, I_1(|c|/h^2)\; u v,$$

    the rotation that brings w closest to z. A reflection conjugates w and v; the mean
    over permutations and reflections is the sum over all such copies of w. The scalar
    mean of $k$ has $I_0$ in place of $I_1 u$. In single precision the force is good to
    1e-3 for bandwidths down to a hundredth of the clouds' size. Everything lives on the
    subspace whose center of mass is the origin.

    References:
        The first trigonometric moment of the von Mises distribution: Mardia and Jupp
        (2000), Directional Statistics, section 3.5.4.
    """

    @property
    def num_copies(self) -> int:
        return self.group.num_permutations * (2 if self.group.reflections else 1)

    def block_sum(self, targets, sources, scores, bandwidth):
        inverse = 1 / bandwidth**2
        copies, pulls = self.copies(sources), self.copies(scores - inverse * sources)
        value, along, across = self._averages(targets, copies, bandwidth)
        turned = jnp.concatenate([pulls, quarter_turn(pulls)])
        force = matmul(jnp.concatenate([along, across], axis=1), turned)
        force = force + inverse * jnp.sum(value, axis=1, keepdims=True) * targets
        return force / self.num_copies

    def value(self, x, y, bandwidth):
        x, y = x.reshape(1, -1), y.reshape(1, -1)
        _, along, across = self._averages(x, self.copies(y), bandwidth)
        columns = self.copies(jnp.eye(x.size, dtype=x.dtype))
        columns = columns.reshape(self.num_copies, x.size, x.size)
        turned = einsum("g,gba->ab", along[0], columns)
        turned += einsum("g,gba->ab", across[0], jax.vmap(quarter_turn)(columns))
        return turned / self.num_copies

    def copies(self, rows: SourceRows) -> Float[Array, "copy dim"]:
        copies = _permute(self.group, rows)
        if self.group.reflections:
            mirror = jnp.tile(jnp.array([1, -1], rows.dtype), rows.shape[1] // 2)
            copies = jnp.concatenate([copies, copies * mirror[None, :]])
        return copies

    def overlaps(self, x: TargetRows, copies: SourceRows) -> Pairs:
        re, im = _products(x, copies)
        return jnp.sqrt(re**2 + im**2)

    def _averages(
        self, targets: TargetRows, copies: SourceRows, bandwidth: Scalar
    ) -> tuple[Pairs, Pairs, Pairs]:
        """Return the means of k and of k times cos and sin of the rotation's angle."""
        inverse = 1 / bandwidth**2
        re, im = _products(targets, copies)
        # Smooth where the overlap vanishes.
        floor = float(jnp.finfo(targets.dtype).tiny) ** 0.5
        overlap = jnp.sqrt(re**2 + im**2 + floor)
        halved = squared_norms(targets, copies) / 2
        nearest = jnp.exp(-inverse * jnp.maximum(halved - overlap, 0))
        slope = nearest * i1e(overlap * inverse) / overlap
        return nearest * i0e(overlap * inverse), slope * re, slope * im


def _products(z: TargetRows, w: SourceRows) -> tuple[Pairs, Pairs]:
    r"""Return the real and imaginary parts of $\sum_i z_i \bar w_i$."""
    return matmul(z, w.T), matmul(z, quarter_turn(w).T)


def quarter_turn(rows: Float[Array, "n dim"]) -> Float[Array, "n dim"]:
    """Return the rows with every particle rotated by 90 degrees."""
    pairs = rows.reshape(len(rows), -1, 2)
    turned = jnp.stack([-pairs[..., 1], pairs[..., 0]], axis=-1)
    return turned.reshape(rows.shape)


class SpatialAverage(AbstractCloudAverage):
    r"""The Haar mean of $k(x, g y) R_g$ over clouds in space, for few particles.

    With the 3 x 3 matrix $M = \sum_i x_i y_i^\top$,

    $$K(x, y)\, v_i = e^{-(|x|^2 + |y|^2)/2h^2}
      \int_{SO(3)} e^{\mathrm{tr}(R^\top M)/h^2} R\, dR\; v_i,$$

    the first moment of the matrix Fisher distribution; a reflection is $-1$ times a
    rotation and takes $M$ to $-M$. The mean over permutations is a sum over copies of
    y. Each pair of copies takes a singular value decomposition and a quadrature, so
    this is for few particles, `Pullback` for many. In single precision the force is
    good to 1e-3 for bandwidths down to a thousandth of the clouds' size. Everything
    lives on the subspace whose center of mass is the origin.

    References:
        Mardia and Jupp (2000), Directional Statistics, section 13.2.3.
    """

    @property
    def num_copies(self) -> int:
        # A quadrature for each pair takes as much memory as 128 numbers.
        return 128 * self.group.num_permutations

    def block_sum(self, targets, sources, scores, bandwidth):
        inverse = 1 / bandwidth**2
        copies, pulls = self.copies(sources), self.copies(scores - inverse * sources)

        def force(x):
            value, turn = jax.vmap(lambda y: self._average(x, y, bandwidth))(copies)
            pulled = einsum("gab,gib->ia", turn, pulls.reshape(len(pulls), -1, 3))
            return pulled.ravel() + inverse * jnp.sum(value) * x

        return jax.vmap(force)(targets) / self.group.num_permutations

    def value(self, x, y, bandwidth):
        copies = self.copies(y.reshape(1, -1))
        _, turns = jax.vmap(lambda y: self._average(x.ravel(), y, bandwidth))(copies)
        size = x.shape[0]
        shuffles = jnp.eye(size, dtype=x.dtype)[self.group.permutations()]
        blocks = einsum("gij,gab->iajb", shuffles, turns)
        return blocks.reshape(x.size, x.size) / self.group.num_permutations

    def copies(self, rows: SourceRows) -> Float[Array, "copy dim"]:
        return _permute(self.group, rows)

    def overlaps(self, x: TargetRows, copies: SourceRows) -> Pairs:
        def overlap(x, y):
            matrix = matmul(x.reshape(-1, 3).T, y.reshape(-1, 3))
            values = jnp.linalg.svd(matrix, compute_uv=False)
            if self.group.reflections:
                return jnp.sum(values)
            return jnp.sum(values.at[2].multiply(jnp.sign(jnp.linalg.det(matrix))))

        return jax.vmap(jax.vmap(overlap, (None, 0)), (0, None))(x, copies)

    def _average(
        self, x: Float[Array, " dim"], y: Float[Array, " dim"], bandwidth: Scalar
    ) -> tuple[Scalar, Float[Array, "3 3"]]:
        """Return the means of k and of k R over the rotations of y."""
        x, y, inverse = x.reshape(-1, 3), y.reshape(-1, 3), 1 / bandwidth**2
        overlap = matmul(inverse * x.T, y)
        shift = inverse * (jnp.sum(x**2) + jnp.sum(y**2)) / 2
        best = proper_svd(overlap)

        def mean(overlap, svd, y):
            # In single precision the overlap's sum and the shift would cancel.
            peak = -0.5 * inverse * jnp.sum((x - matmul(y, svd.rotation.T)) ** 2)
            return rotation_moments(overlap, shift, svd, peak)

        value, turn = mean(overlap, best, y)
        if not self.group.reflections:
            return value, turn
        mirror_image, mirror = mean(-overlap, best.mirror_image(), -y)
        return (value + mirror_image) / 2, (turn - mirror) / 2
