"""The Stein sum of a radial kernel as one program of a GPU, written in Pallas.

Blocks of the Gram matrix stay in the registers of a multiprocessor, where
`_pairs.sum_blocks` writes them to the card's memory and reads them back. Nobody has
measured it on a card so far, so it is off unless `$EQUISTEIN_FUSED` is 1; the tests
compare it with `sum_blocks` in Pallas' interpreter, and compile it down to Triton.
"""

import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from equistein._products import matmul
from equistein.kernels._pairs import (
    SourceRows,
    squared_distances,
    sum_blocks,
    TargetRows,
)

if TYPE_CHECKING:
    from equistein.kernels._radial import AbstractRadialKernel

VARIABLE = "EQUISTEIN_FUSED"
_TARGETS, _SOURCES = 64, 32  # rows of a block
_LEAST, _MOST = 16, 64  # columns: of a product of Triton's, and that registers hold


def is_fused(kernel: "AbstractRadialKernel", targets: TargetRows) -> bool:
    """Whether the sum is to be one program: asked for, on a card, and fit for it."""
    return (
        os.environ.get(VARIABLE) == "1"
        and jax.default_backend() == "gpu"
        and targets.dtype == jnp.float32
        and targets.shape[1] <= _MOST
        and all(leaf.ndim == 0 for leaf in _numbers(kernel))
    )


def fused_sum(
    kernel: "AbstractRadialKernel",
    targets: TargetRows,
    sources: SourceRows,
    scores: SourceRows,
    *,
    interpret: bool = False,
) -> TargetRows:
    """Return the sum of the Stein terms over all sources, as `sum_blocks` does.

    Args:
        kernel: A kernel whose arrays are numbers, such as its bandwidth.
        targets: Where the force acts, centered.
        sources: Where it comes from.
        scores: The scores there.
        interpret: Whether JAX is to go through the program on any device, slowly.
    """
    arrays, static = eqx.partition(kernel, eqx.is_array)
    numbers, structure = jax.tree.flatten(arrays)

    @jax.custom_jvp
    def total(numbers, x, y, s):
        body = functools.partial(_body, structure, static, len(y))
        return _called(body, numbers, x, y, s, interpret)

    @total.defjvp
    def derivative(primals, tangents):
        def by_blocks(numbers, x, y, s):
            own = eqx.combine(jax.tree.unflatten(structure, numbers), static)
            return sum_blocks(own._block_sum, x, y, s)

        return jax.jvp(by_blocks, primals, tangents)

    return total(numbers, targets, sources, scores)


def _numbers(kernel: "AbstractRadialKernel") -> list[Array]:
    return jax.tree.leaves(eqx.filter(kernel, eqx.is_array))


def _called(
    body: Callable[..., None],
    numbers: list[Array],
    x: TargetRows,
    y: SourceRows,
    s: SourceRows,
    interpret: bool,
) -> TargetRows:
    """Return what the program writes, of rows and columns filled up to its blocks."""
    from jax.experimental import pallas
    from jax.experimental.pallas import triton

    num, dim = x.shape
    width = max(_LEAST, 1 << (dim - 1).bit_length())
    x, y, s = (
        jnp.pad(rows, ((0, -len(rows) % block), (0, width - dim)))
        for rows, block in ((x, _TARGETS), (y, _SOURCES), (s, _SOURCES))
    )
    own = pallas.BlockSpec((_TARGETS, width), lambda i: (i, 0))
    whole = lambda array: pallas.BlockSpec(array.shape, lambda i: (0,) * array.ndim)
    given = *(number.astype(x.dtype)[None] for number in numbers), y, s
    found = pallas.pallas_call(
        body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(len(x) // _TARGETS,), in_specs=[own, *map(whole, given)], out_specs=own,
        compiler_params=triton.CompilerParams(num_warps=4, num_stages=2),
        interpret=interpret, name="radial_stein_sum",
    )(x, *given)  # fmt: skip
    return found[:num, :dim]


def _body(structure, static, num_sources, x_ref, *refs) -> None:
    """Write the sum over all sources for one block of targets."""
    from jax.experimental import pallas

    *number_refs, y_ref, s_ref, out_ref = refs
    numbers = [ref[0] for ref in number_refs]
    kernel = eqx.combine(jax.tree.unflatten(structure, numbers), static)
    x = x_ref[...]

    def add(j, sums):
        here = pallas.ds(j * _SOURCES, _SOURCES)
        y, s = y_ref[here, :], s_ref[here, :]
        value, slope = kernel.profile(squared_distances(x, y))
        # The last block is filled up with sources that are none.
        known = j * _SOURCES + jnp.arange(_SOURCES)[None, :] < num_sources
        value, slope = jnp.where(known, value, 0), jnp.where(known, slope, 0)
        pushed, pulled, weight = sums
        weight = weight + jnp.sum(slope, axis=1)[:, None]
        return pushed + matmul(value, s), pulled + matmul(slope, y), weight

    sums = jnp.zeros_like(x), jnp.zeros_like(x), jnp.zeros((len(x), 1), x.dtype)
    num_blocks = y_ref.shape[0] // _SOURCES
    pushed, pulled, weight = jax.lax.fori_loop(0, num_blocks, add, sums)
    # grad_y k = 2 kappa' (y - x)
    out_ref[...] = pushed + 2 * (pulled - weight * x)
