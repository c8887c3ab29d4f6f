"""Concentric circles, spheres and so on."""

from collections.abc import Sequence
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from equistein._arrays import as_keys
from equistein._check_arguments import check_arguments
from equistein._numbers import check_integers
from equistein._types import AnyKey, Key, Particles, Point, Scalar
from equistein.groups import Orthogonal
from equistein.targets._base import AbstractTarget, as_tuples

Grid: TypeAlias = Float[Array, "shell grid"]
_GRID = 4096


@check_arguments
class Shells(AbstractTarget):
    r"""Concentric shells: a density that depends on the distance from the origin.

    $$\log p(x) = \log m(|x|) - \log Z', \qquad
      m(r) = \frac1K \sum_k \mathcal N(r;\, r_k, w_k^2)$$

    `log_density` is $\log m(|x|)$, as in the paper, and `log_normalizer` is $\log Z'$.
    The *radius* of a point has a density proportional to $r^{d-1} m(r)$. (The paper's
    code draws radii from m itself, which is another density.)

    `widths` are one number, or one for each of the `radii`; $d \ge 2$.

    References:
        Jaini, Holdijk and Welling (2021), section 3 and appendix C.
    """

    _radii: tuple[float, ...]
    _widths: tuple[float, ...]
    dim: int

    def __init__(
        self,
        radii: Sequence[float] | Array,
        widths: float | Sequence[float] | Array,
        dim: int,
    ):
        radii = jnp.atleast_1d(jnp.asarray(radii, float))
        widths = jnp.asarray(widths, float)
        if widths.shape not in ((), radii.shape):
            raise ValueError(
                "Shells needs `widths`, one number or one a shell, but got shape "
                f"{widths.shape} for {radii.size} radii."
            )
        widths = jnp.broadcast_to(widths, radii.shape)
        if not bool(jnp.all(radii > 0) & jnp.all(widths > 0)):
            raise ValueError(
                "Shells needs positive `radii` and `widths`, but got "
                f"{radii} and {widths}."
            )
        self._radii, self._widths = as_tuples(radii), as_tuples(widths)
        check_integers("Shells", least=2, dim=dim)
        self.dim = dim

    @property
    def radii(self) -> Float[Array, " shell"]:
        """The radius of each shell."""
        return jnp.asarray(self._radii, float)

    @property
    def widths(self) -> Float[Array, " shell"]:
        """The width of each shell."""
        return jnp.asarray(self._widths, float)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.dim,)

    @property
    def group(self) -> Orthogonal:
        return Orthogonal(self.dim)

    def _log_density(self, point: Point) -> Scalar:
        # Smooth at the origin, where the norm has no gradient.
        floor = float(jnp.finfo(point.dtype).tiny) ** 0.5
        radius = jnp.sqrt(jnp.sum(point**2) + floor)
        return logsumexp(self._log_shells(radius)) - jnp.log(float(self.radii.size))

    @property
    def weights(self) -> Float[Array, " shell"]:
        """The probability of each shell, by the component of the mixture m."""
        masses = self._masses()
        return masses / jnp.sum(masses)

    @property
    def log_normalizer(self) -> Scalar:
        r"""$\log \int m(|x|)\, dx$."""
        half = self.dim / 2
        surface = jnp.log(2.0) + half * jnp.log(jnp.pi) - jax.lax.lgamma(half)
        return surface + jnp.log(jnp.mean(self._masses()))

    def sample(self, key: AnyKey, num: int) -> Particles:
        key = as_keys(key)
        check_integers("`sample`", num=num)
        return self._sample(key, num)

    @eqx.filter_jit
    def _sample(self, key: Key, num: int) -> Particles:
        shell_key, radius_key, direction_key = jr.split(key, 3)
        shells = jr.categorical(shell_key, jnp.log(self.weights), shape=(num,))
        uniform = jr.uniform(radius_key, (num,), self.radii.dtype)
        grid, density = self._radial()
        total = jnp.cumsum(density, axis=1)
        # Each grid point stands for the cell around it.
        cumulative = (total - 0.5 * density) / total[:, -1:]
        invert = jax.vmap(lambda u, k: jnp.interp(u, cumulative[k], grid[k]))
        normal = jr.normal(direction_key, (num, self.dim), self.radii.dtype)
        unit = normal / jnp.linalg.norm(normal, axis=1, keepdims=True)
        return invert(uniform, shells)[:, None] * unit

    def radial_density(
        self, num: int = 400
    ) -> tuple[Float[Array, " num"], Float[Array, " num"]]:
        r"""Return radii, and the density $r^{d-1} m(r) / \int r^{d-1} m$ at them."""
        last = jnp.max(self.radii + 5 * self.widths)
        radii = jnp.linspace(0, last, num, dtype=self.radii.dtype)
        shells = jnp.mean(jnp.exp(jax.vmap(self._log_shells)(radii)), axis=1)
        return radii, radii ** (self.dim - 1) * shells / jnp.mean(self._masses())

    def _log_shells(self, radius: Scalar) -> Float[Array, " shell"]:
        radii, widths = (x.astype(radius.dtype) for x in (self.radii, self.widths))
        squared = ((radius - radii) / widths) ** 2
        return -0.5 * squared - jnp.log(widths) - 0.5 * jnp.log(2 * jnp.pi)

    def _radial(self) -> tuple[Grid, Grid]:
        r"""Return a grid of radii and $r^{d-1} \mathcal N(r; r_k, w_k^2)$ on it."""
        reach = jnp.linspace(-9.0, 9.0, _GRID, dtype=self.radii.dtype)
        grid = self.radii[:, None] + self.widths[:, None] * reach[None, :]
        normal = jnp.exp(-0.5 * reach**2)[None, :] / (2 * jnp.pi) ** 0.5
        normal = normal / self.widths[:, None]
        return grid, jnp.maximum(grid, 0) ** (self.dim - 1) * normal

    def _masses(self) -> Float[Array, " shell"]:
        grid, density = self._radial()
        return jnp.trapezoid(density, grid, axis=1)
