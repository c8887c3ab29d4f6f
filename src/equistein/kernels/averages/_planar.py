"""Averages of the Gaussian kernel over planar point clouds, in closed form."""

import jax
import jax.numpy as jnp
from jax.scipy.special import i0e, i1e
from jaxtyping import Array, Float

from equistein._products import einsum, matmul
from equistein._types import Scalar
from equistein.kernels._pairs import Pairs, SourceRows, squared_norms, TargetRows
from equistein.kernels.averages._cloud_copies import AbstractCloudAverage, permuted


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
        """Return the permuted and reflected rows, copy after copy."""
        copies = permuted(self.group, rows)
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
        """Return the means of k and of k times cos and sin of the angle of turn."""
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
    """Return the rows with every particle turned by 90 degrees."""
    pairs = rows.reshape(len(rows), -1, 2)
    turned = jnp.stack([-pairs[..., 1], pairs[..., 0]], axis=-1)
    return turned.reshape(rows.shape)
