"""What the machine can do at most: products, exponentials, and memory."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array

from benchmarks._timing import REPEATS, seconds

_SIDE = 3_000  # of the matrices of a product
_MANY = 2**26  # numbers that are more than a cache holds


def product_rate() -> float:
    """Return the operations a second of one large product in single precision."""
    fastest = _fastest(lambda x: x @ x, jnp.ones((_SIDE, _SIDE)))
    return 2 * _SIDE**3 / fastest


def exponential_rate() -> float:
    """Return the exponentials a second of numbers in the cache."""
    square = jnp.ones((1_000, 1_000))
    again = lambda x: jax.lax.fori_loop(0, 20, lambda _, y: jnp.exp(-y), x)
    return 20 * square.size / _fastest(again, square)


def memory_rate() -> float:
    """Return the bytes a second that are read and written."""
    return 2 * 4 * _MANY / _fastest(lambda x: x + 1, jnp.ones(_MANY))


def print_rates() -> None:
    """Print the three rates, which bound all times below."""
    print(f"One product of {_SIDE} by {_SIDE}: {product_rate() / 1e9:.0f} Gflop/s;")
    print(f"exponentials: {exponential_rate() / 1e9:.2f} G/s;")
    print(f"memory, read and written: {memory_rate() / 1e9:.1f} GB/s", flush=True)


def _fastest(function: Callable[[Array], Array], x: Array) -> float:
    compiled = jax.jit(function)
    run = lambda: jax.block_until_ready(compiled(x))
    run()
    return min(seconds(run) for _ in range(REPEATS))
