"""Averages of the Gaussian kernel over permutations of labels, in closed form."""

import functools
import itertools
import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein._products import einsum, matmul
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

Square: TypeAlias = Float[Array, "label label *pairs"]

MAX_LABELS = 8


class Blocks(NamedTuple):
    """Embedded points: the coordinates of each label, and those of none."""

    labels: Float[Array, "label particle width"]
    rest: Float[Array, "particle rest"]


class LabelAverage(AbstractAverage):
    r"""The mean of $k(x, g y) R_g$ over permutations or signs of labels, or both.

    The Gaussian kernel is a product over the labels, so that its mean is a permanent,

    $$\frac1{n!} \sum_g \prod_i k(x_i, y_{g(i)}) = \frac{\mathrm{perm}(A)}{n!},
      \qquad A_{ij} = k(x_i, y_j),$$

    and the force on a label is a sum over the labels of the sources, weighted with
    $A_{ij} M_{ij} / n!$ where M are the permanents of the minors: about $n^2 2^n$
    numbers for each pair of points instead of $n\, n!$. With signs, A is the mean of
    both. Coordinates without labels are one more factor.
    """

    group: Permutations | Signs | SignedPermutations
    permutes: bool
    has_signs: bool

    def force(self, base, targets, sources, scores):
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

    def _block_sum(
        self, base: AbstractRadialKernel, targets: TargetRows, sources: SourceRows,
        scores: SourceRows,
    ) -> TargetRows:  # fmt: skip
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
        pulled = self._weight(signed, y.labels)
        total = jnp.sum(weights, axis=(0, 2, 4))[..., None]
        slopes = Blocks(
            total * x.labels - pulled,
            jnp.sum(value, axis=1)[:, None] * x.rest - matmul(value, y.rest),
        )
        drift = Blocks(self._weight(signed, s.labels), matmul(value, s.rest))
        charts = len(base.embed(targets[:1]))
        along = base.pull_back(targets, self._join(slopes, charts))
        return self._join(drift, 1)[0] + inverse * along

    def _minors(self, a: Float[Array, "label other *pairs"]) -> tuple[Pairs, Array]:
        """Return the mean of the products over permutations, and its slopes in A."""
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
        mirror_image = to_all(here.labels - mean, self._partners(-there.labels - mean))
        return jnp.stack([pairs, mirror_image]), rest

    def _weight(
        self,
        weights: Float[Array, "label other target source"],
        values: Float[Array, "label source width"],
    ) -> Float[Array, "label target width"]:
        return einsum("ijts,ijsw->itw", weights, self._partners(values))

    def _partners(self, labels: Array) -> Array:
        """Return the labels that each label may be paired with: all, or itself."""
        if not self.permutes:
            return labels[:, None]
        return jnp.broadcast_to(labels[None], (len(labels), *labels.shape))

    def _blocks(self, base: AbstractRadialKernel, rows: TargetRows) -> Blocks:
        return self._split(base.embed(rows))

    def _split(self, charts: Float[Array, "component particle dim"]) -> Blocks:
        """Return the coordinates of labels and of the rest, charts side by side."""
        labels, rest = self.group.labels.blocks(charts.shape[2])
        parts = jnp.moveaxis(charts[:, :, labels], 2, 0)  # (label, chart, n, width)
        side_by_side = lambda part: jnp.concatenate(list(part), axis=-1)
        return Blocks(jax.vmap(side_by_side)(parts), side_by_side(charts[:, :, rest]))

    def _join(self, blocks: Blocks, num: int) -> Float[Array, "component particle dim"]:
        """Return charts of flat points, the inverse of `_split`."""
        dim = (blocks.labels.shape[0] * blocks.labels.shape[2]) + blocks.rest.shape[1]
        labels, rest = self.group.labels.blocks(dim // num)
        by_chart = jnp.stack(jnp.split(blocks.labels, num, axis=2))
        flat = jnp.zeros((num, blocks.rest.shape[0], dim // num), blocks.labels.dtype)
        flat = flat.at[:, :, labels].set(jnp.moveaxis(by_chart, 1, 2))
        return flat.at[:, :, rest].set(jnp.stack(jnp.split(blocks.rest, num, axis=1)))


def permanent_minors(a: Square) -> tuple[Float[Array, "*pairs"], Square]:
    r"""Return the permanent of $n \times n$ matrices, and that of each minor.

    $$\mathrm{perm}(A) = \sum_g \prod_i A_{i g(i)}, \qquad
      M_{ij} = \frac{\partial\, \mathrm{perm}(A)}{\partial A_{ij}}$$

    By sums over the columns of the first rows and of the last ones, all of nonnegative
    numbers, so that nothing cancels.
    """
    num = len(a)
    first = _over_subsets([a[i] for i in range(num)], jnp.add, jnp.multiply)
    last = _over_subsets([a[i] for i in range(num - 1, -1, -1)], jnp.add, jnp.multiply)
    everything = frozenset(range(num))
    minors = []
    for i, j in itertools.product(range(num), repeat=2):
        terms = [
            first[i][taken] * last[num - 1 - i][everything - taken - {j}]
            for taken in first[i]
            if j not in taken
        ]
        minors.append(sum(terms[1:], terms[0]))
    return first[num][everything], jnp.stack(minors).reshape(a.shape)


def least_sum(costs: Square) -> Float[Array, "*pairs"]:
    r"""Return $\min_g \sum_i C_{i g(i)}$: the cost of the best assignment."""
    sums = _over_subsets(list(costs), jnp.minimum, jnp.add)
    return sums[len(costs)][frozenset(range(len(costs)))]


def _over_subsets(
    rows: list[Array], add: Callable, multiply: Callable
) -> list[dict[frozenset[int], Array]]:
    """Return, for each number of first rows, sums by the set of their columns."""
    num = len(rows)
    start = jnp.zeros_like(rows[0][0])
    layers = [{frozenset(): start if multiply is jnp.add else start + 1}]
    for k, row in enumerate(rows):
        layer = {}
        for taken in map(frozenset, itertools.combinations(range(num), k + 1)):
            terms = [multiply(row[j], layers[k][taken - {j}]) for j in sorted(taken)]
            layer[taken] = functools.reduce(add, terms)
        layers.append(layer)
    return layers
