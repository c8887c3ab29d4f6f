"""A Gaussian and its copies under a finite group."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import jax.random as jr
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from equistein._arrays import as_keys
from equistein._check_arguments import check_arguments
from equistein._numbers import check_integers
from equistein._products import matmul
from equistein._types import AnyKey, Particles, Point, Scalar
from equistein.groups import AbstractGroup
from equistein.targets._base import AbstractTarget, as_tuples


@check_arguments
class RotatedGaussians(AbstractTarget):
    r"""The equal mixture of a Gaussian's images under a finite group.

    $$p(x) = \frac1{|G|} \sum_g \mathcal N(x;\, g\mu,\, R_g \Sigma R_g^\top)$$

    Normalized, and invariant under the group. With its defaults it is the paper's
    C4-Gaussians.

    Args:
        group: A finite group acting on points of shape `(d,)`.
        mean: The mean $\mu$ of one Gaussian, shape `(d,)`.
        covariance: The covariance $\Sigma$ of the same, shape `(d, d)`.

    References:
        Jaini, Holdijk and Welling (2021), section 3 and appendix C.2.
    """

    symmetry: AbstractGroup
    _mean: tuple[float, ...]
    _factor: tuple[tuple[float, ...], ...]  # of the covariance, by Cholesky
    _whiten: tuple[tuple[float, ...], ...]  # its inverse

    def __init__(
        self,
        group: AbstractGroup,
        mean: Sequence[float] | Array = (3.0, 0.0),
        covariance: Sequence[Sequence[float]] | Array = ((1.0, 0.0), (0.0, 0.2)),
    ):
        if group.order is None:
            raise ValueError(
                "RotatedGaussians needs a finite `group` such as Cyclic(4), but got "
                f"{group!r}."
            )
        self.symmetry = group
        mean, covariance = jnp.asarray(mean, float), jnp.asarray(covariance, float)
        group.check_shape(mean.shape)
        size = mean.size
        if mean.ndim != 1 or covariance.shape != (size, size):
            raise ValueError(
                "RotatedGaussians needs `mean` of shape (d,) and `covariance` of shape "
                f"(d, d), but got {mean.shape} and {covariance.shape}."
            )
        factor = jnp.linalg.cholesky(covariance)
        if not bool(jnp.all(jnp.isfinite(factor))):
            raise ValueError(
                "RotatedGaussians needs a positive definite `covariance`, but got\n"
                f"{covariance}."
            )
        self._mean, self._factor = as_tuples(mean), as_tuples(factor)
        self._whiten = as_tuples(jnp.linalg.inv(factor))

    @property
    def mean(self) -> Float[Array, " dim"]:
        """The mean of one Gaussian."""
        return jnp.asarray(self._mean, float)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.mean.size,)

    @property
    def group(self) -> AbstractGroup:
        return self.symmetry

    def _log_density(self, point: Point) -> Scalar:
        # The image's density at x is the Gaussian's at g^-1 x, over the whole group.
        orbit = self.symmetry.orbit(point)
        offsets = orbit - self.mean.astype(point.dtype)[None]
        whiten = jnp.asarray(self._whiten, float).astype(point.dtype)
        whitened = matmul(offsets, whiten.T)
        distances = jnp.sum(whitened**2, axis=1)
        factor = jnp.asarray(self._factor, float)
        volume = jnp.sum(jnp.log(jnp.diagonal(factor))).astype(point.dtype)
        size = self.mean.size
        constant = volume + 0.5 * size * jnp.log(2 * jnp.pi) + jnp.log(len(orbit))
        return logsumexp(-0.5 * distances) - constant.astype(point.dtype)

    def sample(self, key: AnyKey, num: int) -> Particles:
        key = as_keys(key)
        check_integers("`sample`", num=num)
        normal_key, element_key = jr.split(key)
        normal = jr.normal(normal_key, (num, self.mean.size), self.mean.dtype)
        points = self.mean[None] + matmul(normal, jnp.asarray(self._factor, float).T)
        elements = self.symmetry.sample(element_key, num)
        return jax.vmap(self.symmetry.act)(elements, points)
