"""The samplers that are compared on particle systems."""

import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from jaxtyping import Array, Float, Int

from equistein._types import Key, Particles, Scalar
from equistein.diagnostics import effective_sample_size
from equistein.experiments._systems import System, SystemConfig
from equistein.features import PairHistogram
from equistein.kernels import Moments, Pullback, RBF
from equistein.samplers import (
    advance,
    Geometric,
    Langevin,
    MALA,
    SVGD,
    thermal,
    thin,
    vector_adam,
)

_SNAPSHOTS = 16  # of the correcting chains, to thin
_FINE_BINS = 100  # of the distances that thinning looks at
_WARM_UP = 100  # evaluations of MALA before NUTS


Sampler = Callable[
    [Key, Particles, Int[Array, ""]], tuple[Particles, dict[str, Scalar]]
]


def samplers(config: SystemConfig, system: System) -> dict[str, tuple[Sampler, int]]:
    """Return each sampler as a function of key, start and number of evaluations.

    It gives particles and further numbers. With each comes the largest number of
    evaluations it is tried with.
    """
    target = system.target
    project, species = target.group.project, target.group.species
    features = PairHistogram(
        species, reach=config.reach, num_centers=config.num_bins, width=config.bin_width
    )

    def annealed(num_steps):
        """Return the schedule of the temperature, and that of a squared length."""
        annealing = Geometric(
            config.annealed_share * num_steps, start=config.start_inverse_temperature
        )
        return annealing, lambda size, last: thermal(
            size, annealing, num_steps, power=1.0, last=last
        )

    def moved(key, sampler, start, num_steps):
        """Return where a number of steps, which may be traced, takes the particles."""
        state = sampler.init(start)
        return advance(key, sampler, target.log_density, state, num_steps).particles

    def flowed(key, start, num_steps):
        """Return E-SVGD's particles, and what is left of the evaluations."""
        flowing = (num_steps * (1 - config.corrected_share)).astype(int)
        annealing, rate = annealed(flowing)
        flow = SVGD(
            Moments(features), optax.sgd(rate(config.stein_step, 1.0)),
            annealing=annealing, langevin=rate(config.noise, 1.0),
            score_clip=config.score_clip,
        )  # fmt: skip
        return moved(key, flow, start, flowing), num_steps - flowing

    def corrected(key, particles, num_steps):
        """Return the states of chains that correct particles, in the second half."""
        half = num_steps // 2
        chains = MALA(
            config.mala_step, num_adapt=half, score_clip=config.score_clip,
            project=project,
        )  # fmt: skip
        state = advance(key, chains, target.log_density, chains.init(particles), half)

        def snapshot(state, index):
            after = half + (num_steps - half) * (index + 1) // _SNAPSHOTS
            state = advance(key, chains, target.log_density, state, after)
            return state, state.particles

        return jax.lax.scan(snapshot, state, jnp.arange(_SNAPSHOTS))[1]

    def equivariant(key, start, num_steps):
        flow_key, chain_key = jr.split(key)
        particles, left = flowed(flow_key, start, num_steps)
        return corrected(chain_key, particles, left)[-1], {}

    def thinned(key, start, num_steps):
        flow_key, chain_key, thin_key = jr.split(key, 3)
        particles, left = flowed(flow_key, start, num_steps)
        snapshots = corrected(chain_key, particles, left)
        pool = snapshots.reshape(-1, *start.shape[1:])
        levels = jax.vmap(target.log_density)(pool)
        chosen = thin(thin_key, fine_features(system, pool), levels, len(start))
        chosen = jr.permutation(jr.fold_in(thin_key, 1), chosen)  # not by energy
        worth = effective_sample_size(levels.reshape(_SNAPSHOTS, -1).T)
        return pool[chosen], {"pool_effective_size": worth}

    def langevin(key, start, num_steps):
        annealing, rate = annealed(num_steps)
        chains = Langevin(
            rate(config.noise, 0.05), annealing=annealing,
            score_clip=config.score_clip, project=project,
        )  # fmt: skip
        return moved(key, chains, start, num_steps), {}

    def mala(key, start, num_steps):
        annealing, _ = annealed(num_steps)
        chains = MALA(
            config.mala_step, num_adapt=(config.annealed_share * num_steps).astype(int),
            annealing=annealing, score_clip=config.score_clip, project=project,
        )  # fmt: skip
        return moved(key, chains, start, num_steps), {}

    def deterministic(kernel):
        def sampler(key, start, num_steps):
            annealing = Geometric(
                config.annealed_share * num_steps,
                start=config.start_inverse_temperature,
            )
            rate = thermal(config.quiet_step, annealing, num_steps)
            flow = SVGD(
                kernel, vector_adam(rate, b1=0.0, b2=0.9), annealing=annealing,
                score_clip=config.score_clip, project=project,
            )  # fmt: skip
            return moved(key, flow, start, num_steps), {}

        return sampler

    return {
        "equivariant": (equivariant, config.num_steps),
        "thinned": (thinned, config.num_steps),
        "quiet": (deterministic(Pullback(RBF(), target.features)), config.pair_budget),
        "vanilla": (deterministic(RBF()), config.pair_budget),
        "langevin": (langevin, config.num_steps),
        "mala": (mala, config.num_steps),
    }


def fine_features(system: System, pool: Particles) -> Float[Array, "n feature"]:
    """Return what thinning looks at: the distances, in fine bins."""
    low, high = system.limits
    num = round(_FINE_BINS * high / (high - low)) + 1
    histogram = PairHistogram(system.target.group.species, reach=high, num_centers=num)
    return jax.vmap(histogram)(pool)


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

    mala, _ = samplers(config, system)["mala"]
    warm_up = min(_WARM_UP, config.num_steps // 4)
    down = eqx.filter_jit(mala)
    dtype = jnp.zeros(()).dtype

    def log_density(point):
        middle = jnp.mean(point, axis=0, keepdims=True)
        return system.target.log_density(point) - jnp.sum(middle**2) / 2

    group = system.target.group
    algorithm: Any = blackjax.nuts(
        log_density, config.nuts_step,
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
