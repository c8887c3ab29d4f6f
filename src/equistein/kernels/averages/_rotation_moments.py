"""The normalizer of the matrix Fisher distribution on SO(3), and its moments."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import i0e, i1e
from jaxtyping import Array, Float

from equistein._products import matmul
from equistein._types import Scalar


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
