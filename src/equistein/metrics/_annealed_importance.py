"""The normalizer of a density, by annealed importance sampling."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from equistein._types import Key, LogDensity, Particles, Scalar
from equistein.metrics._reference import AbstractReference

_PILOTS = 64
_FEWEST = 8  # effective samples, below which an error cannot be told


class LogNormalizer(eqx.Module):
    r"""An estimate of $\log Z$.

    Attributes:
        value: The estimate, the mean of the two below.
        error: A bound on its error: half their difference, which vanishes as the
            annealing slows down, and three standard errors. Infinite where fewer than
            8 effective samples are left, since both estimates then miss together: take
            more steps or more particles.
        forward: The estimate from the base to the density; its mean is a lower bound.
        backward: The estimate back from the samples; its mean is an upper bound as far
            as these are samples of the density.
        effective_sample_size: What the forward weights leave of the chains.
        num_particles: The number of chains.
    """

    value: Scalar
    error: Scalar
    forward: Scalar
    backward: Scalar
    effective_sample_size: Scalar
    num_particles: int


class _Chain(eqx.Module):
    """Particles with the target's values and scores there, and log weights."""

    particles: Particles
    value: Float[Array, " particle"]
    score: Particles
    log_weight: Float[Array, " particle"]


@eqx.filter_jit
def annealed_importance_sampling(
    key: Key,
    log_density: LogDensity,
    base: AbstractReference,
    *,
    num_particles: int = 512,
    num_steps: int = 2_000,
) -> LogNormalizer:
    r"""Estimate $\log Z = \log \int e^{\log p(x)} dx$, with a bound on the error.

    Chains go from the base to the density along $b(x)^{1 - \beta} p(x)^\beta$, each
    step a Metropolis-adjusted Langevin move whose length a pilot run found; they are
    resampled by their weights and go back. Regions that the base does not reach and
    that no chain finds are missing from both estimates: take a base wider than the
    density.

    Args:
        key: The source of randomness.
        log_density: The unnormalized log density of one point.
        base: A normalized density with a sampler, on the subspace the points live on.
        num_particles: The number of chains.
        num_steps: The number of temperatures, and of moves.

    References:
        Neal (2001), Annealed importance sampling; Grosse, Ancha and Roy (2016),
        Measuring the reliability of MCMC inference, for the way back.
    """
    if num_particles < 2 or num_steps < 1:
        raise ValueError(
            "Annealed importance sampling needs `num_particles` >= 2 and `num_steps` "
            f">= 1, but got {num_particles!r} and {num_steps!r}."
        )
    keys = jr.split(key, 6)
    # Small steps while the density is nearly flat, where its energies are largest.
    betas = (jnp.arange(num_steps + 1) / num_steps) ** 4

    def start(key, num):
        x = base.sample(key, num)
        value, score = jax.vmap(jax.value_and_grad(log_density))(x)
        return _Chain(x, value, score, jnp.zeros(num, x.dtype))

    betas = betas.astype(jax.eval_shape(lambda k: base.sample(k, 1), key).dtype)
    pilot = start(keys[0], _PILOTS)
    rates = _tune(keys[1], pilot, log_density, base, betas)
    there = _anneal(
        keys[3], start(keys[2], num_particles), log_density, base, betas, rates
    )
    weights = jax.nn.softmax(there.log_weight)
    chosen = jr.choice(keys[4], num_particles, (num_particles,), p=weights)
    again = jax.tree.map(lambda leaf: leaf[chosen], there)
    again = eqx.tree_at(lambda c: c.log_weight, again, 0 * again.log_weight)
    back = _anneal(keys[5], again, log_density, base, betas[::-1], rates[::-1])
    forward, first = _log_mean(there.log_weight)
    backward, second = _log_mean(back.log_weight)
    error = jnp.abs(forward + backward) / 2 + 3 * jnp.maximum(first, second)
    effective = 1 / jnp.sum(weights**2)
    error = jnp.where(effective < _FEWEST, jnp.inf, error)
    return LogNormalizer(
        (forward - backward) / 2,
        error,
        forward,
        -backward,
        effective,
        num_particles,
    )


def _anneal(key, chain, log_density, base, betas, rates) -> _Chain:
    """Weigh and move along the temperatures; a move uses the later one's rate."""

    def step(chain, inputs):
        key, before, after, rate = inputs
        against = jax.vmap(base.log_density)(chain.particles)
        gain = (after - before) * (chain.value - against)
        chain = eqx.tree_at(lambda c: c.log_weight, chain, chain.log_weight + gain)
        return _move(key, chain, log_density, base, after, rate)[0], None

    keys = jr.split(key, len(rates))
    chain, _ = jax.lax.scan(step, chain, (keys, betas[:-1], betas[1:], rates))
    return chain


def _tune(key, chain, log_density, base, betas) -> Float[Array, " step"]:
    """Return for each temperature the step size that accepts three moves in five."""

    def step(carry, inputs):
        chain, log_rate = carry
        key, beta = inputs
        chain, chance = _move(key, chain, log_density, base, beta, jnp.exp(log_rate))
        log_rate = log_rate + 0.2 * (chance - 0.6)
        return (chain, log_rate), jnp.exp(log_rate)

    spread = jnp.mean(jnp.var(chain.particles, axis=0))
    keys = jr.split(key, len(betas) - 1)
    carry = (chain, jnp.log(0.5 * spread))
    _, rates = jax.lax.scan(step, carry, (keys, betas[1:]))
    return rates


def _move(key, chain, log_density, base, beta, rate) -> tuple[_Chain, Scalar]:
    """Take a Metropolis-adjusted Langevin step; return the mean acceptance too."""
    noise_key, coin_key = jr.split(key)
    axes = tuple(range(1, chain.particles.ndim))
    spread = lambda values: values.reshape(-1, *[1] * len(axes))

    def on_path(x, value, score):
        against, pull = jax.vmap(jax.value_and_grad(base.log_density))(x)
        return (1 - beta) * against + beta * value, (1 - beta) * pull + beta * score

    x = chain.particles
    log_here, slope = on_path(x, chain.value, chain.score)
    noise = jax.vmap(base.project)(jr.normal(noise_key, x.shape, x.dtype))
    noise = jnp.sqrt(2 * rate) * noise
    new = x + rate * slope + noise
    value, score = jax.vmap(jax.value_and_grad(log_density))(new)
    log_there, new_slope = on_path(new, value, score)
    back = x - new - rate * new_slope
    bias = (jnp.sum(noise**2, axis=axes) - jnp.sum(back**2, axis=axes)) / (4 * rate)
    log_ratio = log_there - log_here + bias
    # A proposal whose density is not a number is not taken.
    chance = jnp.where(jnp.isnan(log_ratio), 0, jnp.exp(jnp.minimum(log_ratio, 0)))
    taken = jr.uniform(coin_key, chance.shape, chance.dtype) < chance
    moved = _Chain(
        jnp.where(spread(taken), new, x),
        jnp.where(taken, value, chain.value),
        jnp.where(spread(taken), score, chain.score),
        chain.log_weight,
    )
    return moved, jnp.mean(chance)


def _log_mean(log_weights: Float[Array, " n"]) -> tuple[Scalar, Scalar]:
    """Return the log of the mean weight and its standard error."""
    num = len(log_weights)
    weights = num * jax.nn.softmax(log_weights)
    error = jnp.std(weights) / jnp.sqrt(float(num))
    return logsumexp(log_weights) - jnp.log(float(num)), error.astype(weights.dtype)
