"""BlackJAX's NUTS on particle systems, to compare with."""

import functools
import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from equistein._types import Key, Particles
from equistein.experiments.systems._config import SystemConfig
from equistein.experiments.systems._samplers import Snapshot, SystemSamplers
from equistein.experiments.systems._system import System

_WARM_UP = 100  # evaluations of MALA before


def nuts(
    config: SystemConfig, system: System, key: Key, start: Particles
) -> list[Snapshot]:
    """Return the particles of BlackJAX's NUTS, after doubling transitions.

    NUTS does not come down from overlaps, so it starts where MALA is after 100
    evaluations, which count. Its chains live in all coordinates, with the center of
    mass held by a spring.
    """
    warm_up = min(_WARM_UP, config.num_steps // 4)
    down, init, transitions = _compiled(config, system)

    def warmed(num):
        points, _ = down(jr.fold_in(key, 1_000_000), start, jnp.asarray(num))
        return init(points)

    jax.block_until_ready(transitions(key, warmed(0), jnp.asarray(0)))  # compile
    began = time.perf_counter()
    states, spent, done, snapshots = warmed(warm_up), float(warm_up), 0, []
    while spent < config.num_steps / 2:
        more = max(done, 2)
        states, cost = transitions(jr.fold_in(key, done), states, jnp.asarray(more))
        done, spent = done + more, spent + float(cost)
        points = jax.vmap(system.target.group.project)(states.position)
        snapshots.append(Snapshot(points, spent, time.perf_counter() - began, {}))
    return snapshots


@functools.lru_cache(1)
def _compiled(config: SystemConfig, system: System) -> tuple[Callable, ...]:
    """Return MALA, what makes NUTS's states of points, and what moves these."""
    import blackjax

    dtype, group = jnp.zeros(()).dtype, system.target.group

    def log_density(point):
        middle = jnp.mean(point, axis=0, keepdims=True)
        return system.target.log_density(point) - jnp.sum(middle**2) / 2

    algorithm: Any = blackjax.nuts(
        log_density, config.nuts_step_size,
        jnp.ones(len(group.species) * group.dim, dtype), max_num_doublings=6,
    )  # fmt: skip

    @jax.jit
    def transitions(key, states, num):
        def one(i, carry):
            states, spent = carry
            keys = jr.split(jr.fold_in(key, i), len(states.position))
            states, info = jax.vmap(algorithm.step)(keys, states)
            spent = spent + jnp.mean(info.num_integration_steps.astype(dtype))
            return states, spent

        return jax.lax.fori_loop(0, num, one, (states, jnp.zeros((), dtype)))

    down = eqx.filter_jit(SystemSamplers(config, system).named("mala"))
    return down, jax.jit(jax.vmap(algorithm.init)), transitions
