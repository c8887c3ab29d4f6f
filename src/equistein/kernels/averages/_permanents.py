"""Sums over all permutations by sums over subsets."""

import itertools
from collections.abc import Callable
from typing import TypeAlias

import jax.numpy as jnp
from jaxtyping import Array, Float

Square: TypeAlias = Float[Array, "label label *pairs"]


def permanent_minors(a: Square) -> tuple[Float[Array, "*pairs"], Square]:
    r"""Return the permanent of $n \times n$ matrices, and that of each minor.

    $$\mathrm{perm}(A) = \sum_g \prod_i A_{i g(i)}, \qquad
      M_{ij} = \frac{\partial\, \mathrm{perm}(A)}{\partial A_{ij}}$$

    By sums over the columns that the first rows take, and those that the last ones
    take: about $n^2 2^n$ products where the definition has $n\, n!$, all of numbers
    that are not negative, so that nothing cancels.
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
    """Return, for each number of first rows, the sum over all ways to take columns.

    By the set of the columns that they take.
    """
    num = len(rows)
    start = jnp.zeros_like(rows[0][0])
    layers = [{frozenset(): start if multiply is jnp.add else start + 1}]
    for k, row in enumerate(rows):
        layer = {}
        for taken in map(frozenset, itertools.combinations(range(num), k + 1)):
            terms = [multiply(row[j], layers[k][taken - {j}]) for j in sorted(taken)]
            total = terms[0]
            for term in terms[1:]:
                total = add(total, term)
            layer[taken] = total
        layers.append(layer)
    return layers
