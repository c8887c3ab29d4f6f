"""Distances of all pairs of points, and sums over them."""

from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein._products import matmul

Targets: TypeAlias = Float[Array, "target *shape"]
Sources: TypeAlias = Float[Array, "source *shape"]  # and the scores there
TargetRows: TypeAlias = Float[Array, "target dim"]
SourceRows: TypeAlias = Float[Array, "source dim"]
Pairs: TypeAlias = Float[Array, "target source"]

_SIDE = 2**10  # of a block's Gram matrix on a CPU: 4 MiB in float32
_SIDE_ON_GPU = 2**13  # 256 MiB, so that a block has work for all of it
_FEW_POINTS, _FEW_NUMBERS = 2**6, 6  # points, and numbers of each


def map_blocks(
    block: Callable[[Float[Array, "block k"]], Float[Array, "block m"]],
    targets: Float[Array, "target k"],
    numbers_per_row: int,
) -> Float[Array, "target m"]:
    """Return `block(targets)`, computed for some rows at a time.

    Memory is O(n), not O(n^2), and a block's numbers, so many for each row, stay in the
    CPU's cache.
    """
    num, width = targets.shape
    rows = max(_side() ** 2 // numbers_per_row, 8)
    if num <= rows:
        return block(targets)
    num_blocks = -(-num // rows)
    rows = -(-num // num_blocks)
    padded = jnp.pad(targets, ((0, num_blocks * rows - num), (0, 0)))
    sums = jax.lax.map(block, padded.reshape(num_blocks, rows, width))
    return sums.reshape(num_blocks * rows, -1)[:num]


def _side() -> int:
    return _SIDE if jax.default_backend() == "cpu" else _SIDE_ON_GPU


def sum_blocks(
    block: Callable[[TargetRows, SourceRows, SourceRows], TargetRows],
    targets: TargetRows,
    sources: SourceRows,
    scores: SourceRows,
) -> TargetRows:
    """Return the sum of `block(targets, sources, scores)` over all sources.

    Blocks are nearly square: few rows by many columns take twice as long.
    """
    num = len(sources)
    size = -(-num // -(-num // _side()))
    whole = num // size

    def of_rows(rows: TargetRows) -> TargetRows:
        if whole == 1:
            total = block(rows, sources[:size], scores[:size])
        else:
            parts = [
                each[: whole * size].reshape(whole, size, -1)
                for each in (sources, scores)
            ]
            add = lambda total, part: (total + block(rows, *part), None)
            total, _ = jax.lax.scan(add, jnp.zeros_like(rows), parts)
        if whole * size < num:
            total += block(rows, sources[whole * size :], scores[whole * size :])
        return total

    return map_blocks(of_rows, targets, size)


def flatten(particles: Float[Array, "n *shape"]) -> Float[Array, "n dim"]:
    """Return the particles as rows."""
    return particles.reshape(len(particles), -1)


def squared_distances(x: TargetRows, y: SourceRows) -> Pairs:
    r"""Return $|x_i - y_j|^2$, of many pairs by one matmul.

    Center the points first: there the terms cancel, and in float32 a cloud far from the
    origin would lose all digits.
    """
    if differences_are_faster(x, y):
        total = jnp.zeros((len(x), len(y)), x.dtype)
        for i in range(x.shape[1]):  # not one sum over an axis: it would not be fused
            total += (x[:, None, i] - y[None, :, i]) ** 2
        return total
    return jnp.maximum(squared_norms(x, y) - matmul(2 * x, y.T), 0)


def differences_are_faster(x: TargetRows, y: SourceRows) -> bool:
    """Whether pairwise differences are faster than a product of matrices.

    More sources than targets are often copies by a group, which XLA would recompute
    for each difference.
    """
    return len(x) == len(y) <= _FEW_POINTS and x.shape[1] <= _FEW_NUMBERS


def squared_norms(x: TargetRows, y: SourceRows) -> Pairs:
    """Return $|x_i|^2 + |y_j|^2$."""
    return jnp.sum(x**2, axis=1)[:, None] + jnp.sum(y**2, axis=1)[None, :]


def centered(
    x: TargetRows, y: SourceRows, about: Float[Array, "row dim"]
) -> tuple[TargetRows, SourceRows]:
    """Return both sets of points minus the mean of a third, that of all particles.

    With one center on all devices they round alike, whichever targets each has.
    """
    mean = jax.lax.stop_gradient(jnp.mean(about, axis=0, keepdims=True))
    return x - mean, y - mean
