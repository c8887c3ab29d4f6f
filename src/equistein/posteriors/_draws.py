"""Draws of a posterior out of the history of a run."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein._types import Key, LogDensity
from equistein.groups import AbstractGroup
from equistein.samplers import Samples

_AT_ONCE = 256


def kept_draws(samples: Samples, num: int) -> Float[Array, "chain draw dim"]:
    """Return the places of the chains at the last recorded steps.

    Raises:
        ValueError: If the sampler had not come to the density itself by then.
    """
    history = samples.history
    particles, betas = history["particles"], history.get("inverse_temperature")
    last = slice(-num, None)
    if betas is not None:
        there = np.asarray(betas)[last] >= 1
        if not np.all(there):
            raise ValueError(
                "the sampler cools down until the end of the run: at "
                f"{np.sum(~there)} of the {len(there)} steps that draws are taken of "
                "it was still hotter than the posterior. Take more `num_steps`, or "
                "fewer `num_draws`."
            )
    return jnp.swapaxes(jnp.asarray(particles[last]), 0, 1)


@eqx.filter_jit
def spread_over_orbits(
    key: Key, group: AbstractGroup, points: Float[Array, "chain draw dim"]
) -> Float[Array, "chain draw dim"]:
    """Return each point moved by a Haar-random element of its own."""
    flat = points.reshape(-1, points.shape[-1])
    moved = jax.vmap(group.act)(group.sample(key, len(flat)), flat)
    return moved.reshape(points.shape)


@eqx.filter_jit
def log_densities(
    log_density: LogDensity, points: Float[Array, "chain draw dim"]
) -> Float[Array, "chain draw"]:
    """Return the log density of each point."""
    flat = points.reshape(-1, points.shape[-1])
    values = jax.lax.map(log_density, flat, batch_size=_AT_ONCE)
    return values.reshape(points.shape[:2])
