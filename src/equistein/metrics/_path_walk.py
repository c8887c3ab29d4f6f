"""Chains along a geometric path, at temperatures that are fixed beforehand."""

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from equistein._types import Key, Scalar
from equistein.samplers import (
    AbstractReference,
    ChainParameters,
    GeometricPath,
    MALA,
    PathWalker,
)

_ACCEPTANCE = 0.6


def walk(
    key: Key,
    path: GeometricPath,
    walkers: PathWalker,
    betas: Float[Array, " temperature"],
    step_sizes: Float[Array, " step"],
) -> tuple[PathWalker, Float[Array, " particle"]]:
    """Weigh and move walkers from the first to the last inverse temperature.

    Returns:
        The walkers and the logarithms of their weights.
    """

    def step(carry, inputs):
        walkers, log_weights = carry
        key, before, after, step_size = inputs
        log_weights = log_weights + (after - before) * walkers.log_ratio
        walkers, _ = _move(key, path, walkers, after, jnp.log(step_size))
        return (walkers, log_weights), None

    inputs = (jr.split(key, len(step_sizes)), betas[:-1], betas[1:], step_sizes)
    carry = (walkers, jnp.zeros_like(walkers.value))
    return jax.lax.scan(step, carry, inputs)[0]


def tune(
    key: Key, path: GeometricPath, walkers: PathWalker, betas: Float[Array, " step"]
) -> Float[Array, " step"]:
    """Return for each inverse temperature the step size that accepts 0.6."""
    inside = jnp.isfinite(walkers.value)

    def step(carry, inputs):
        walkers, log_size = carry
        key, beta = inputs
        walkers, chances = _move(key, path, walkers, beta, log_size)
        chance = jnp.sum(jnp.where(inside, chances, 0)) / jnp.maximum(
            jnp.sum(inside), 1
        ).astype(chances.dtype)
        log_size = log_size + 0.2 * (chance - _ACCEPTANCE)
        return (walkers, log_size), jnp.exp(log_size)

    spread = jnp.mean(jnp.var(walkers.point, axis=0))
    carry = (walkers, jnp.log(0.5 * spread))
    return jax.lax.scan(step, carry, (jr.split(key, len(betas)), betas))[1]


def _move(
    key: Key,
    path: GeometricPath,
    walkers: PathWalker,
    beta: Scalar,
    log_step_size: Scalar,
) -> tuple[PathWalker, Float[Array, " particle"]]:
    """Move each walker; return the acceptance probabilities too."""
    assert isinstance(path.base, AbstractReference)
    chains = MALA(1.0, project=path.base.project)
    parameters = ChainParameters(log_step_size)
    move = lambda key, walker: chains.move(key, path, walker, beta, parameters)
    walkers, chances, *_ = jax.vmap(move)(jr.split(key, len(walkers.point)), walkers)
    return walkers, chances
