"""Swaps between neighboring temperatures, and the journeys that they make."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Int

from equistein._types import Key
from equistein.samplers._geometric_path import PathWalker

_UP, _DOWN = 1, 2  # to the hot end, and back from it


class Replicas(eqx.Module):
    """Walkers of shape (temperature, chain) with their journeys through the ladder.

    Attributes:
        walker: The points, with what is known of them.
        heading: 0 before the first visit of an end, 1 after one of the target, 2 after
            one of the hot end that came after it.
        round_trips: How often each walker went to the hot end and came back.
    """

    walker: PathWalker
    heading: Int[Array, "temperature chain"]
    round_trips: Int[Array, "temperature chain"]

    @classmethod
    def at_start(cls, walker: PathWalker) -> "Replicas":
        """Return replicas that have been nowhere."""
        none = jnp.zeros(walker.value.shape, int)
        return cls(walker, none, none)


def swapped(
    key: Key,
    replicas: Replicas,
    betas: Float[Array, " temperature"],
    parity: Int[Array, ""],
) -> tuple[Replicas, Float[Array, " pair"], Bool[Array, " pair"]]:
    """Swap neighbors whose colder temperature has an even, or an odd, number.

    Returns:
        The replicas, the probability that each pair refused, averaged over the chains,
        and which pairs were asked.
    """
    chances = swap_chances(replicas.walker, betas)
    due = jnp.arange(len(chances)) % 2 == parity
    taken = due[:, None] & (jr.uniform(key, chances.shape, chances.dtype) < chances)
    none = jnp.zeros((1, chances.shape[1]), bool)
    up, down = jnp.concatenate([taken, none]), jnp.concatenate([none, taken])
    order = jnp.arange(len(betas))[:, None] + up.astype(int) - down.astype(int)

    def reordered(leaf):
        index = order.reshape(*order.shape, *[1] * (leaf.ndim - 2))
        return jnp.take_along_axis(leaf, index, axis=0)

    replicas = jax.tree.map(reordered, replicas)
    return _arrived(replicas), 1 - jnp.mean(chances, axis=1), due


def swap_chances(
    walkers: PathWalker, betas: Float[Array, " temperature"]
) -> Float[Array, "pair chain"]:
    r"""Return the probabilities $\min(1, e^{\Delta\beta\, \Delta \log p / b})$.

    A point where the density is zero never comes from the reference.
    """
    ratio = walkers.log_ratio
    gain = (betas[:-1] - betas[1:])[:, None] * (ratio[1:] - ratio[:-1])
    return jnp.nan_to_num(jnp.exp(jnp.minimum(gain, 0)), nan=0.0)


def _arrived(replicas: Replicas) -> Replicas:
    """Note who is at an end of the ladder."""
    heading, trips = replicas.heading, replicas.round_trips
    trips = trips.at[0].add((heading[0] == _DOWN).astype(int))
    heading = heading.at[0].set(_UP)
    last = jnp.where(heading[-1] == _UP, _DOWN, heading[-1])
    heading = heading.at[-1].set(last) if len(heading) > 1 else heading
    return Replicas(replicas.walker, heading, trips)
