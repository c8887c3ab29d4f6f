"""Stein sums of many particles: beside loops over blocks by hand, and a product."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array

from benchmarks._rates import product_rate
from benchmarks._timing import Contestant, print_times, REPEATS, seconds
from equistein.groups import ImageRotations
from equistein.kernels import AbstractKernel, Equivariant, RBF

_SIDES = (250, 500, 1_000, 2_000)  # of blocks by hand, of which the fastest is shown


def blocks() -> None:
    """Print the milliseconds of a Stein sum, and its share of a product's rate."""
    rate = product_rate()
    print(f"\nStein sums; a large product runs at {rate / 1e9:.0f} Gflop/s;")
    print(f"median of {REPEATS} interleaved runs")
    for num, dim in ((4_000, 2), (16_000, 2), (4_000, 64), (16_000, 64)):
        x = jr.normal(jr.key(0), (num, dim))
        side = min(_SIDES, key=lambda side: seconds(_by_hand(x, side)))
        contestants = {
            f"by hand, blocks of {side}": Contestant(_by_hand(x, side)),
            "equistein, RBF": Contestant(_ours(RBF(1.0), x)),
        }
        operations = num**2 * (4 * dim + 2)
        print(f"\nn = {num}, d = {dim}; {operations / rate * 1e3:.1f} ms at that rate")
        print_times(contestants, f"by hand, blocks of {side}")
    num, side = 2_000, 28
    images = jr.normal(jr.key(0), (num, side, side))
    kernel = Equivariant(RBF(20.0), ImageRotations())
    operations = 4 * num**2 * (4 * side**2 + 2)
    print(f"\nn = {num}, d = {side**2}; {operations / rate * 1e3:.1f} ms at that rate")
    ours = Contestant(_ours(kernel, images))
    print_times({"equistein, Equivariant C4": ours}, "equistein, Equivariant C4")


def _ours(kernel: AbstractKernel, x: Array) -> Callable[[], Any]:
    force = jax.jit(lambda x: kernel.stein_force(x, x, -x))
    return lambda: jax.block_until_ready(force(x))


def _by_hand(x: Array, side: int) -> Callable[[], Any]:
    """Return what runs the sum over square blocks, compiled."""
    force = jax.jit(lambda x: force_by_hand(x, side))
    run = lambda: jax.block_until_ready(force(x))
    run()
    return run


def force_by_hand(x: Array, side: int) -> Array:
    """Return the force of a normal density at bandwidth 1, over square blocks."""
    parts = x.reshape(-1, side, x.shape[1])

    def of_rows(rows):
        def add(total, sources):
            norms = jnp.sum(rows**2, axis=1)[:, None] + jnp.sum(sources**2, axis=1)
            gram = jnp.exp(rows @ sources.T - norms / 2)
            ones = jnp.ones((side, 1))
            sums = gram @ jnp.concatenate([-2 * sources, ones], axis=1)
            return total + sums[:, :-1] + sums[:, -1:] * rows, None

        return jax.lax.scan(add, jnp.zeros_like(rows), parts)[0]

    return jax.lax.map(of_rows, parts).reshape(x.shape) / len(x)
