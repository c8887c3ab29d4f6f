"""Parallel tempering: reference samples of a particle system."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from equistein._types import Key, LogDensity, Particles
from equistein.groups import PointCloud
from equistein.samplers import jump_move, langevin_move, Walker, walker_at

_ACCEPTANCE = 0.6  # of the Langevin moves


class Tempered(eqx.Module):
    """What parallel tempering gave.

    Attributes:
        samples: For each ladder its samples of the coldest density, in order.
        acceptance: The acceptance rate of the Langevin moves, by temperature.
        swaps: The acceptance rate of the swaps between neighboring temperatures.
    """

    samples: Float[Array, "ladder sample *shape"]
    acceptance: Float[Array, " temperature"]
    swaps: Float[Array, " pair"]


@eqx.filter_jit
def parallel_tempering(
    key: Key,
    log_density: LogDensity,
    start: Particles,
    group: PointCloud,
    *,
    inverse_temperatures: Float[Array, " temperature"],
    num_steps: int,
    num_samples: int,
    every: int,
    jump: float,
    score_clip: float | None = None,
) -> Tempered:
    r"""Run ladders of chains at several temperatures that swap their points.

    A step is a Metropolis-adjusted Langevin move of every chain, a jump of one
    particle, and a swap of neighbors in temperature, accepted with probability
    $\min(1, e^{(\beta_i - \beta_j)(\log p(x_j) - \log p(x_i))})$. During the first
    `num_steps` steps each temperature finds its Langevin step (acceptance 0.6); then
    the steps are kept, so that the samples' law is exactly invariant.

    Args:
        key: The source of randomness.
        log_density: The target.
        start: Where the ladders start, one point each.
        group: The particles' group; its subspace is kept.
        inverse_temperatures: From the target's, 1, to the hottest.
        num_steps: The number of steps before the first sample.
        num_samples: The number of samples a ladder.
        every: The number of steps from one sample to the next.
        jump: The standard deviation of a coordinate in a jump.
        score_clip: The largest drift of a Langevin move, as for `MALA`.

    References:
        Earl and Deem (2005), Parallel tempering: Theory, applications, and new
        perspectives.
    """
    num = len(inverse_temperatures)
    betas = inverse_temperatures.astype(start.dtype)

    def over_chains(move, step_sizes, key, walkers, *settings):
        """Move the chains of all temperatures and ladders."""
        keys = jr.split(key, (num, len(start)))
        one = lambda key, walker, beta, step_size: move(
            key, log_density, walker, beta, step_size, group.project, *settings
        )
        over_ladders = jax.vmap(one, (0, 0, None, None))
        return jax.vmap(over_ladders)(keys, walkers, betas, step_sizes)

    def swap(key, number, walkers):
        """Swap neighbors: pairs that begin at an even temperature, then at an odd."""
        gain = (betas[:-1] - betas[1:])[:, None] * (
            walkers.value[1:] - walkers.value[:-1]
        )
        chance = jnp.nan_to_num(jnp.exp(jnp.minimum(gain, 0)))
        due = (jnp.arange(num - 1) % 2 == number % 2)[:, None]
        taken = due & (jr.uniform(key, chance.shape, chance.dtype) < chance)
        none = jnp.zeros((1, len(start)), bool)
        up, down = (
            jnp.concatenate([taken, none]),
            jnp.concatenate([none, taken]),
        )
        order = jnp.arange(num)[:, None] + up.astype(int) - down.astype(int)

        def reorder(leaf):
            index = order.reshape(*order.shape, *[1] * (leaf.ndim - 2))
            return jnp.take_along_axis(leaf, index, axis=0)

        rate = jnp.sum(jnp.where(due, chance, 0), axis=1) / len(start)
        return jax.tree.map(reorder, walkers), rate

    def step(number, carry, warm):
        walkers, log_step_sizes, accepted, swapped = carry
        langevin_key, jump_key, swap_key = jr.split(jr.fold_in(key, number), 3)
        walkers, chance = over_chains(
            langevin_move, jnp.exp(log_step_sizes), langevin_key, walkers, score_clip
        )
        jumps = jnp.full((num,), jump, start.dtype)
        walkers, _ = over_chains(jump_move, jumps, jump_key, walkers)
        walkers, rate = swap(swap_key, number, walkers)
        chance = jnp.mean(chance, axis=1)
        if warm:
            log_step_sizes = log_step_sizes + 0.05 * (chance - _ACCEPTANCE)
        else:
            accepted, swapped = accepted + chance, swapped + 2 * rate
        return walkers, log_step_sizes, accepted, swapped

    def advance(carry, first):
        """Take the steps to the next sample."""
        carry = jax.lax.fori_loop(
            first, first + every, lambda i, c: step(i, c, False), carry
        )
        return carry, carry[0].point[0]

    walker = jax.vmap(lambda x: walker_at(log_density, group.project(x)))(start)
    walkers: Walker = jax.tree.map(
        lambda leaf: jnp.broadcast_to(leaf[None], (num, *leaf.shape)), walker
    )
    log_step_sizes = jnp.full((num,), jnp.log(1e-3), start.dtype)
    zeros = jnp.zeros(num, start.dtype)
    carry = (walkers, log_step_sizes, zeros, zeros[1:])
    carry = jax.lax.fori_loop(0, num_steps, lambda i, c: step(i, c, True), carry)
    firsts = num_steps + every * jnp.arange(num_samples)
    (_, _, accepted, swapped), points = jax.lax.scan(advance, carry, firsts)
    total = num_samples * every
    return Tempered(jnp.swapaxes(points, 0, 1), accepted / total, swapped / total)
