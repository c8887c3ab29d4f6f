"""Averages of the Gaussian kernel over the orders of labels, in closed form."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein._products import einsum, matmul
from equistein._types import Point
from equistein.groups import Permutations, SignedPermutations, Signs
from equistein.kernels._pairs import (
    map_blocks,
    Pairs,
    SourceRows,
    squared_distances,
    TargetRows,
)
from equistein.kernels._radial import AbstractRadialKernel
from equistein.kernels.averages._base import AbstractAverage
from equistein.kernels.averages._permanents import least_sum, permanent_minors

MAX_LABELS = 8


class Blocks(NamedTuple):
    """Embedded points: the coordinates of each label, and those of none."""

    labels: Float[Array, "label particle width"]
    rest: Float[Array, "particle rest"]


class LabelAverage(AbstractAverage):
    r"""The mean of $k(x, g y) R_g$ over n labels' orders, or signs, or both.

    The Gaussian kernel is a product over the labels, so that its mean is a permanent,

    $$\frac1{n!} \sum_g \prod_i k(x_i, y_{g(i)}) = \frac{\mathrm{perm}(A)}{n!},
      \qquad A_{ij} = k(x_i, y_j),$$

    and the force on a label is a sum over the labels of the sources, weighted with
    $A_{ij} M_{ij} / n!$ where M are the permanents of the minors: about $n^2 2^n$
    numbers for each pair of points instead of $n\, n!$. With signs, A is the mean of
    both. The coordinates that belong to no label are one factor more.
    """

    group: Permutations | Signs | SignedPermutations
    permutes: bool
    has_signs: bool

    def stein_force(self, base, targets, sources, scores):
        x, y, s = map(self.rows, (targets, sources, scores))
        copies = 4 * self.group.labels.num**2 * (1 + self.has_signs)
        block = lambda rows: self._block_sum(base, rows, y, s)
        total = map_blocks(block, x, len(y) * copies)
        return (total / len(y)).reshape(targets.shape)

    def matrix(self, base, x, y):
        def force(score):
            there, here, score = (z.reshape(1, -1) for z in (x, y, score))
            return self._block_sum(base, there, here, score)[0]

        basis = jnp.eye(x.size, dtype=x.dtype)  # the force is affine in the score
        return (jax.vmap(force)(basis) - force(jnp.zeros_like(x))[None]).T

    def squared_orbit_distances(self, base, x, y):
        costs, rest = self._squared(base, self.rows(x), self.rows(y))
        costs = jnp.min(costs, axis=0)
        if self.permutes:
            return least_sum(costs) + rest
        return jnp.sum(costs[:, 0], axis=0) + rest

    def project(self, point: Point) -> Point:
        return self.group.project(point)

    def _block_sum(
        self,
        base: AbstractRadialKernel,
        targets: TargetRows,
        sources: SourceRows,
        scores: SourceRows,
    ) -> TargetRows:
        """Return the sum of the Stein terms over the sources, all pairs at once."""
        inverse = 1 / base.fixed_bandwidth(targets) ** 2
        squared, rest = self._squared(base, targets, sources)
        factor = base.profile(rest)[0]
        grams = base.profile(squared)[0] / len(squared)
        value, minors = self._minors(jnp.sum(grams, axis=0))
        minors = minors * factor[None, None]
        weights = grams * minors[None]  # (sign, label, other, target, source)
        value = factor * value
        x, y = self._blocks(base, targets), self._blocks(base, sources)
        s = self._split(scores[None])
        signed = weights[0] - weights[1] if self.has_signs else weights[0]
        pulled = self._weighted(signed, y.labels)
        total = jnp.sum(weights, axis=(0, 2, 4))[..., None]
        slopes = Blocks(
            total * x.labels - pulled,
            jnp.sum(value, axis=1)[:, None] * x.rest - matmul(value, y.rest),
        )
        drift = Blocks(self._weighted(signed, s.labels), matmul(value, s.rest))
        charts = len(base.embed(targets[:1]))
        along = base.pull_back(targets, self._joined(slopes, charts))
        return self._joined(drift, 1)[0] + inverse * along

    def _minors(self, a: Float[Array, "label other *pairs"]) -> tuple[Pairs, Array]:
        """Return the mean of the products over the orders, and its slopes in A."""
        if self.permutes:
            value, minors = permanent_minors(a)
            return value / math.factorial(len(a)), minors / math.factorial(len(a))
        others = [[b for j, b in enumerate(a[:, 0]) if j != i] for i in range(len(a))]
        minors = [math.prod(part, start=jnp.ones_like(a[0, 0])) for part in others]
        return a[0, 0] * minors[0], jnp.stack(minors)[:, None]

    def _squared(
        self, base: AbstractRadialKernel, x: TargetRows, y: SourceRows
    ) -> tuple[Float[Array, "sign label other target source"], Pairs]:
        """Return the squared distances of labels, with both signs, and of the rest."""
        here, there = self._blocks(base, x), self._blocks(base, y)
        mean = jnp.mean(here.rest, axis=0, keepdims=True)
        rest = squared_distances(here.rest - mean, there.rest - mean)
        mean = jnp.mean(here.labels, axis=(0, 1), keepdims=True)
        to_all = jax.vmap(jax.vmap(squared_distances, (None, 0)))
        pairs = to_all(here.labels - mean, self._partners(there.labels - mean))
        if not self.has_signs:
            return pairs[None], rest
        mirrored = to_all(here.labels - mean, self._partners(-there.labels - mean))
        return jnp.stack([pairs, mirrored]), rest

    def _weighted(
        self,
        weights: Float[Array, "label other target source"],
        values: Float[Array, "label source width"],
    ) -> Float[Array, "label target width"]:
        return einsum("ijts,ijsw->itw", weights, self._partners(values))

    def _partners(self, labels: Array) -> Array:
        """Return, for each label, those it may stand against: all, or itself."""
        if not self.permutes:
            return labels[:, None]
        return jnp.broadcast_to(labels[None], (len(labels), *labels.shape))

    def _blocks(self, base: AbstractRadialKernel, rows: TargetRows) -> Blocks:
        return self._split(base.embed(rows))

    def _split(self, charts: Float[Array, "chart particle dim"]) -> Blocks:
        """Return the coordinates of labels and of the rest, charts side by side."""
        labels, rest = self._places(charts.shape[2])
        parts = jnp.moveaxis(charts[:, :, labels], 2, 0)  # (label, chart, n, width)
        side_by_side = lambda part: jnp.concatenate(list(part), axis=-1)
        return Blocks(jax.vmap(side_by_side)(parts), side_by_side(charts[:, :, rest]))

    def _joined(self, blocks: Blocks, num: int) -> Float[Array, "chart particle dim"]:
        """Return charts of flat points, what `_split` took apart."""
        dim = (blocks.labels.shape[0] * blocks.labels.shape[2]) + blocks.rest.shape[1]
        labels, rest = self._places(dim // num)
        by_chart = jnp.stack(jnp.split(blocks.labels, num, axis=2))
        flat = jnp.zeros((num, blocks.rest.shape[0], dim // num), blocks.labels.dtype)
        flat = flat.at[:, :, labels].set(jnp.moveaxis(by_chart, 1, 2))
        return flat.at[:, :, rest].set(jnp.stack(jnp.split(blocks.rest, num, axis=1)))

    def _places(self, dim: int) -> tuple[np.ndarray, np.ndarray]:
        return self.group.labels.blocks(dim)
