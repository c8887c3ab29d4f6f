"""Stein sums of many particles: beside loops over blocks by hand, and a product."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array

from benchmarks._timing import Contestant, print_times, REPEATS, seconds
from equistein.groups import ImageRotations
from equistein.kernels import AbstractKernel, Equivariant, RBF

_SIDES = (250, 500, 1_000, 2_000)  # of blocks by hand, of which the fastest is shown
_PRODUCT = 3_000


def blocks() -> None:
    """Print the milliseconds of a Stein sum, and its share of a product's rate."""
    rate = _rate_of_a_product()
    print(f"\nStein sums; a product of {_PRODUCT} by {_PRODUCT} numbers runs at")
    print(f"{rate / 1e9:.0f} Gflop/s; median of {REPEATS} interleaved runs")
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


def _rate_of_a_product() -> float:
    """Return the operations a second of one large product."""
    square = jnp.ones((_PRODUCT, _PRODUCT))
    product = jax.jit(lambda x: x @ x)
    run = lambda: jax.block_until_ready(product(square))
    run()
    return 2 * _PRODUCT**3 / min(seconds(run) for _ in range(REPEATS))


def _ours(kernel: AbstractKernel, x: Array) -> Callable[[], Any]:
    force = jax.jit(lambda x: kernel.stein_force(x, x, -x))
    return lambda: jax.block_until_ready(force(x))


def _by_hand(x: Array, side: int) -> Callable[[], Any]:
    """Return what runs the sum over square blocks, at bandwidth 1 and compiled."""

    @jax.jit
    def force(x):
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

    run = lambda: jax.block_until_ready(force(x))
    run()
    return run
