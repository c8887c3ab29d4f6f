"""Averages of the Gaussian kernel over clouds, in the plane and in space."""

import abc

import jax
import jax.numpy as jnp
from jax.scipy.special import i0e, i1e
from jaxtyping import Array, Float

from equistein._products import einsum, matmul
from equistein._types import Point, Scalar
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
from equistein.kernels.averages._rotation_moments import proper_svd, rotation_moments

MAX_PERMUTATIONS = 120  # five like particles


class AbstractCloudAverage(AbstractClosedForm):
    """A mean over rotations of a point cloud and permutations of like particles."""

    group: AbstractCloud

    @abc.abstractmethod
    def copies(self, rows: SourceRows) -> Float[Array, "copy dim"]:
        """Return the enumerated copies of the rows, one after the other."""

    @abc.abstractmethod
    def overlaps(self, x: TargetRows, copies: SourceRows) -> Pairs:
        """Return the largest inner products over the rotations of the copies."""

    def project(self, point: Point) -> Point:
        return self.group.project(point)

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
