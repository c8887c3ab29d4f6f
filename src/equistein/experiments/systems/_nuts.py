"""BlackJAX's NUTS on particle systems, to compare with."""

import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from equistein._types import Key, Particles
from equistein.experiments.systems._samplers import SystemSamplers
from equistein.experiments.systems._system import System, SystemConfig

_WARM_UP = 100  # evaluations of MALA before


def nuts_curve(
    config: SystemConfig, system: System
) -> Callable[[Key, Particles], list[tuple[float, float, Particles]]]:
    """Return BlackJAX's NUTS, which gives particles after doubling transitions.

    With them come the evaluations a particle they took on average, and the seconds
    without compilation. NUTS does not come down from overlaps, so it starts where MALA
    is after 100 evaluations, which count. Its chains live in all coordinates, with the
    center of mass held by a spring.
    """
    import blackjax

    warm_up = min(_WARM_UP, config.num_steps // 4)
    down = eqx.filter_jit(SystemSamplers(config, system).mala)
    dtype = jnp.zeros(()).dtype

    def log_density(point):
        middle = jnp.mean(point, axis=0, keepdims=True)
        return system.target.log_density(point) - jnp.sum(middle**2) / 2

    group = system.target.group
    algorithm: Any = blackjax.nuts(
        log_density, config.nuts_step_size,
        jnp.ones(len(group.species) * group.dim, dtype), max_num_doublings=6,
    )  # fmt: skip
    step: Any = jax.vmap(algorithm.step)
    init: Any = jax.jit(jax.vmap(algorithm.init))

    @jax.jit
    def transitions(key, states, num):
        def one(i, carry):
            states, spent = carry
            keys = jr.split(jr.fold_in(key, i), len(states.position))
            states, info = step(keys, states)
            spent = spent + jnp.mean(info.num_integration_steps.astype(dtype))
            return states, spent

        return jax.lax.fori_loop(0, num, one, (states, jnp.zeros((), dtype)))

    def curve(key, start):
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
            points = jax.vmap(group.project)(states.position)
            snapshots.append((spent, time.perf_counter() - began, points))
        return snapshots

    return curve
