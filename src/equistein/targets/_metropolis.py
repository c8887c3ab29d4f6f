"""Reference samples of a particle system by Markov chains."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from equistein._types import Key, LogDensity, Particles
from equistein.groups import PointCloud


@eqx.filter_jit
def reference_chains(
    key: Key,
    log_density: LogDensity,
    start: Particles,
    group: PointCloud,
    *,
    num_steps: int,
    heating: float,
    jump: float,
) -> tuple[Particles, Float[Array, " chain"]]:
    r"""Run one chain a point, from hot to the target, and return their last points.

    A step is a Metropolis-adjusted Langevin move of all particles, then a jump of one
    particle, which carries chains between basins. The first half of the steps goes
    from inverse temperature `heating` to 1 in equal factors; the second half samples
    the target itself. Each chain finds its own Langevin step during the first half
    (acceptance 0.6), then keeps it, so that the second half leaves the target exactly
    invariant.

    Args:
        key: The source of randomness.
        log_density: The target.
        start: Where the chains start, `(chain, n, dim)`.
        group: The particles' group; its subspace is kept.
        num_steps: The number of steps.
        heating: The first inverse temperature.
        jump: The standard deviation of a coordinate in a jump.

    Returns:
        The last point of each chain, and the acceptance rate of its Langevin moves over
        the second half.

    References:
        Roberts and Tweedie (1996), Exponential convergence of Langevin distributions.
    """
    half = num_steps // 2
    value_and_score = jax.value_and_grad(log_density)

    def noise_of(key, x):
        return group.project(jr.normal(key, x.shape, x.dtype))

    def langevin(key, current, beta, rate):
        """Return the proposal and the log of its acceptance ratio."""
        x, value, score = current
        noise = jnp.sqrt(2 * rate) * noise_of(key, x)
        there = x + rate * beta * score + noise
        new_value, new_score = value_and_score(there)
        back = x - there - rate * beta * new_score
        bias = (jnp.sum(noise**2) - jnp.sum(back**2)) / (4 * rate)
        return (there, new_value, new_score), beta * (new_value - value) + bias

    def leap(key, current, beta):
        x, value, _ = current
        which_key, length_key = jr.split(key)
        which = jr.randint(which_key, (), 0, len(x))
        move = jump * jr.normal(length_key, x.shape[1:], x.dtype)
        there = group.project(x.at[which].add(move))
        new_value, new_score = value_and_score(there)
        return (there, new_value, new_score), beta * (new_value - value)

    def accept(key, proposal, current, log_ratio):
        chance = jnp.exp(jnp.minimum(log_ratio, 0))
        taken = jr.uniform(key, (), chance.dtype) < chance
        pick = lambda new, old: jnp.where(taken, new, old)
        return jax.tree.map(pick, proposal, current), jnp.nan_to_num(chance)

    def chain(key, x):
        def step(carry, i):
            current, log_rate, total = carry
            beta = jnp.exp(jnp.log(heating) * jnp.maximum(1 - i / half, 0))
            beta = beta.astype(x.dtype)
            keys = jr.split(jr.fold_in(key, i), 4)
            proposal, log_ratio = langevin(keys[0], current, beta, jnp.exp(log_rate))
            current, chance = accept(keys[1], proposal, current, log_ratio)
            proposal, log_ratio = leap(keys[2], current, beta)
            current, _ = accept(keys[3], proposal, current, log_ratio)
            log_rate += jnp.where(i < half, 0.05 * (chance - 0.6), 0.0)
            total += jnp.where(i < half, 0.0, chance)
            return (current, log_rate, total), None

        first = jnp.log(jnp.full((), 1e-2, x.dtype))
        carry = ((x, *value_and_score(x)), first, jnp.zeros((), x.dtype))
        (current, _, total), _ = jax.lax.scan(step, carry, jnp.arange(num_steps))
        return current[0], total / (num_steps - half)

    return jax.vmap(chain)(jr.split(key, len(start)), start)
