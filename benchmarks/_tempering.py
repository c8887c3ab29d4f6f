"""Parallel tempering beside its inner sampler, and NUTS beside BlackJAX's own loop."""

from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array

from benchmarks._timing import Contestant, is_installed, print_times, REPEATS
from equistein.samplers import (
    AbstractSampler,
    from_blackjax,
    MALA,
    ParallelTempering,
    run,
)
from equistein.targets import DoubleWell, LennardJones
from equistein.targets._particle_system import AbstractParticleSystem

_LADDERS = 64
_TEMPERATURES = 8
_SWAPS = 10_000
_NUTS_STEPS = 50
_NUTS_STEP_SIZE = 0.15


def tempering() -> None:
    """Print the microseconds of a step of 8 x 64 replicas, and of NUTS."""
    for name, target in {"DW-4": DoubleWell(), "LJ-13": LennardJones()}.items():
        chains = MALA(1e-3, project=target.group.project)
        ladder = ParallelTempering(
            chains, jnp.geomspace(1, target.hottest, _TEMPERATURES), num_adapt=0
        )
        num = _LADDERS * _TEMPERATURES
        print(f"\n{_SWAPS} steps of {num} chains of {name}, and as many swaps of them")
        print(f"in {_LADDERS} ladders; median of {REPEATS} interleaved runs")
        contestants = {
            "MALA": _ours(chains, target, num, _SWAPS),
            "ParallelTempering": _ours(ladder, target, _LADDERS, _SWAPS),
        }
        print_times(contestants, "MALA", "us")
    if is_installed("blackjax", "BlackJAX"):
        _nuts()


def _nuts() -> None:
    """Print the milliseconds of a transition of 256 chains by NUTS on DW-4."""
    import blackjax

    target = DoubleWell()
    chains = from_blackjax(
        blackjax.nuts, step_size=_NUTS_STEP_SIZE, project=target.group.project
    )
    print(f"\n{_NUTS_STEPS} transitions of NUTS, 256 chains of DW-4; median of")
    print(f"{REPEATS} interleaved runs")
    contestants = {
        "BlackJAX's kernel, vmapped by hand": _by_hand(target),
        "equistein, from_blackjax": _ours(chains, target, 256, _NUTS_STEPS),
    }
    print_times(contestants, "BlackJAX's kernel, vmapped by hand")


def _ours(
    sampler: AbstractSampler, target: AbstractParticleSystem, num: int, num_steps: int
) -> Contestant:
    start = target.start(jr.key(0), num)

    def contestant() -> Array:
        samples = run(
            jr.key(1), sampler, target.log_density, start, num_steps=num_steps,
            check=False,
        )  # fmt: skip
        return jax.block_until_ready(samples.particles)

    return Contestant(contestant, calls=num_steps)


def _by_hand(target: DoubleWell) -> Contestant:
    """Return BlackJAX's NUTS as one would loop over it, on all coordinates.

    The center of mass, which the density does not hold, is held by a spring.
    """
    import blackjax

    def log_density(point: Array) -> Array:
        return target.log_density(point) - jnp.sum(jnp.mean(point, axis=0) ** 2) / 2

    start = target.start(jr.key(0), 256)
    algorithm: Any = blackjax.nuts(log_density, _NUTS_STEP_SIZE, jnp.ones(8))

    @jax.jit
    def loop(key: Array, points: Array) -> Array:
        def transition(states: Any, key: Array) -> tuple[Any, None]:
            return jax.vmap(algorithm.step)(jr.split(key, len(points)), states)[0], None

        states = jax.vmap(algorithm.init)(points)
        states, _ = jax.lax.scan(transition, states, jr.split(key, _NUTS_STEPS))
        return states.position

    return Contestant(
        lambda: jax.block_until_ready(loop(jr.key(1), start)), calls=_NUTS_STEPS
    )
