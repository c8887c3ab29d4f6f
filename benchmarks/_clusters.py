"""The gradient of LJ-55 for many clouds, beside the formula as usually written."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array

from benchmarks._timing import Contestant, print_times, repeated, REPEATS
from equistein.targets import LennardJones

_NUM = 1_000
_CALLS = 3


def clusters() -> None:
    """Print the milliseconds of energies and gradients of 1 000 clouds."""
    _against_plain("LJ-55", LennardJones(55))
    _against_plain("LJ-13", LennardJones())


def _against_plain(name: str, target: LennardJones) -> None:
    """Compare a cluster with the plain sum over pairs."""
    clouds = target.start(jr.key(0), _NUM)
    contestants = {
        "equistein": _timed(target.log_density, clouds),
        "plain vmapped gradient": _timed(_plain(target), clouds),
    }
    print(f"\nEnergy and gradient of {_NUM} clouds of {name}; median of {REPEATS} runs")
    print_times(contestants, "equistein")


def _timed(log_density: Callable, clouds: Array) -> Contestant:
    both = jax.jit(jax.vmap(jax.value_and_grad(log_density)))
    return repeated(lambda: jax.block_until_ready(both(clouds)), _CALLS)


def _plain(target: LennardJones) -> Callable:
    """Return the log density by a list of pairs and powers of their distances."""
    first, second = np.triu_indices(target.num_particles, k=1)

    def log_density(x):
        gaps = x[first] - x[second]
        distances = jnp.sqrt(jnp.sum(gaps**2, axis=-1)) / target.minimum
        sixth = jnp.maximum(distances, 0.4) ** -6
        pairs = target.pair_factor * jnp.sum(sixth**2 - 2 * sixth)
        center = jnp.mean(x, axis=0, keepdims=True)
        return -pairs - target.trap / 2 * jnp.sum((x - center) ** 2)

    return log_density
