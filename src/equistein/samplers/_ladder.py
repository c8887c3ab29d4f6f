"""Ladders of inverse temperatures, and the checks of what lies on them."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from equistein._types import Key, Scalar
from equistein.samplers._geometric_path import PathWalker

_ROUNDS = 12  # of adaptation, at most; each is as long as all before it
_MIN_REJECTION = 1e-3  # rejection of a pair, or temperatures would coincide
_TO_HOT, _TO_TARGET = 1, 2


def first_ladder(num: int) -> Float[np.ndarray, " temperature"]:
    """Return inverse temperatures from 1 to 0, closest at the hot end."""
    return (np.arange(num - 1, -1, -1) / (num - 1)) ** 4


def is_round_end(step: Int[Array, ""], num_adapt: int) -> Bool[Array, ""]:
    """Return whether the ladder moves after this many steps.

    The rounds double in length; the last half of the adaptation is for step sizes.
    """
    ends = [num_adapt >> j for j in range(1, _ROUNDS) if num_adapt >> j]
    return jnp.any(step == jnp.asarray(ends, int))


def equal_rejection(
    betas: Float[Array, " temperature"], rejections: Float[Array, " pair"]
) -> Float[Array, " temperature"]:
    r"""Return the ladder whose neighbors would all refuse equally often.

    The rejections, summed along the ladder, are the barrier $\Lambda(\beta)$ whatever
    the ladder; it is inverted at equal distances, linearly between temperatures.

    References:
        Syed et al. (2022), Non-reversible parallel tempering, algorithm 2.
    """
    barrier = jnp.cumsum(jnp.maximum(rejections, _MIN_REJECTION))
    barrier = jnp.concatenate([jnp.zeros_like(barrier[:1]), barrier])
    wanted = barrier[-1] * jnp.linspace(0, 1, len(betas), dtype=betas.dtype)
    return jnp.interp(wanted, barrier, betas).at[0].set(1).at[-1].set(betas[-1])


def check_ladder(ladder: Any, reference: Any) -> np.ndarray:
    """Return inverse temperatures; raise `ValueError` unless they are a ladder."""
    ladder = np.asarray(ladder)
    falls = ladder.ndim == 1 and len(ladder) >= 2 and bool(np.all(np.diff(ladder) < 0))
    ends = falls and ladder[0] == 1 and ladder[-1] >= 0
    if not ends or (reference is not None and ladder[-1] > 0):
        raise ValueError(
            "ParallelTempering needs `inverse_temperatures`, at least two numbers that "
            "fall from 1, as [1, 0.5, 0.1, 0], to 0 where there is a `reference`, but "
            f"got {ladder.tolist()}."
        )
    return ladder


class Replicas(eqx.Module):
    """Walkers of shape (temperature, chain) with their journeys through the ladder.

    Attributes:
        heading: 0 before the first visit to the target, 1 on the way to the hot end, 2
            on the way back.
        round_trips: How often each walker went there and came back.
    """

    walker: PathWalker
    heading: Int[Array, "temperature chain"]
    round_trips: Int[Array, "temperature chain"]


def swap_neighbors(
    key: Key,
    replicas: Replicas,
    betas: Float[Array, " temperature"],
    parity: Int[Array, ""],
) -> tuple[Replicas, Float[Array, " pair"], Bool[Array, " pair"]]:
    """Swap neighbors whose colder temperature has an even, or an odd, number.

    Returns the replicas, the probability that each pair refused, averaged over the
    chains, and which pairs were asked.
    """
    chances = swap_chances(replicas.walker, betas)
    due = jnp.arange(len(chances)) % 2 == parity
    taken = due[:, None] & (jr.uniform(key, chances.shape, chances.dtype) < chances)
    takes_hotter = jnp.pad(taken, ((0, 1), (0, 0)))
    takes_colder = jnp.pad(taken, ((1, 0), (0, 0)))

    def reorder(leaf):  # by selection, which is faster than a gather
        wide = lambda mask: jnp.expand_dims(mask, range(2, leaf.ndim))
        colder = jnp.where(wide(takes_colder), jnp.roll(leaf, 1, axis=0), leaf)
        return jnp.where(wide(takes_hotter), jnp.roll(leaf, -1, axis=0), colder)

    replicas = jax.tree.map(reorder, replicas)
    return _note_arrivals(replicas), 1 - jnp.mean(chances, axis=1), due


def swap_chances(
    walkers: PathWalker, betas: Float[Array, " temperature"]
) -> Float[Array, "pair chain"]:
    r"""Return the probabilities $\min(1, e^{\Delta\beta\, \Delta \log p / b})$.

    A point where the density is zero never comes from the reference.
    """
    ratio = walkers.log_ratio
    gain = (betas[:-1] - betas[1:])[:, None] * (ratio[1:] - ratio[:-1])
    return jnp.nan_to_num(jnp.exp(jnp.minimum(gain, 0)), nan=0.0)


def _note_arrivals(replicas: Replicas) -> Replicas:
    """Note who is at an end of the ladder."""
    heading, trips = replicas.heading, replicas.round_trips
    trips = trips.at[0].add((heading[0] == _TO_TARGET).astype(int))
    heading = heading.at[0].set(_TO_HOT)
    last = jnp.where(heading[-1] == _TO_HOT, _TO_TARGET, heading[-1])
    heading = heading.at[-1].set(last) if len(heading) > 1 else heading
    return Replicas(replicas.walker, heading, trips)


class PathStatistics(eqx.Module):
    """Sums over `num_steps` steps.

    Attributes:
        rejected: The probabilities that each pair of neighbors refuses to swap.
        asked: How often each pair was asked to.
        log_ratios: The log ratios of target and reference.
        stones: The ratios of the densities at neighboring temperatures, at the hotter
            one's points: the logarithms of their sums.
        inverse_stones: Those of the inverse ratios, at the colder one's points.
        inside: How often the hottest point had positive density.
    """

    rejected: Float[Array, " pair"]
    asked: Float[Array, " pair"]
    log_ratios: Float[Array, "temperature chain"]
    stones: Float[Array, "pair chain"]
    inverse_stones: Float[Array, "pair chain"]
    inside: Float[Array, " chain"]
    num_steps: Scalar

    @classmethod
    def empty(cls, num: int, chains: int, dtype: jnp.dtype) -> "PathStatistics":
        """Return the statistics of no step."""
        pairs, stones = jnp.zeros(num - 1, dtype), jnp.zeros((num - 1, chains), dtype)
        log_zero = stones - jnp.inf
        ratios = jnp.zeros((num, chains), dtype)
        return cls(
            pairs, pairs, ratios, log_zero, log_zero, ratios[0], jnp.zeros((), dtype)
        )

    def with_walkers(
        self, walkers: PathWalker, betas: Float[Array, " temperature"]
    ) -> "PathStatistics":
        """Return the statistics with another step's walkers."""
        ratio, gaps = walkers.log_ratio, (betas[:-1] - betas[1:])[:, None]
        return PathStatistics(
            self.rejected, self.asked, self.log_ratios + ratio,
            jnp.logaddexp(self.stones, gaps * ratio[1:]),
            jnp.logaddexp(self.inverse_stones, -gaps * ratio[:-1]),
            self.inside + jnp.isfinite(ratio[-1]).astype(self.inside.dtype),
            self.num_steps + 1,
        )  # fmt: skip

    def with_swaps(
        self, rejected: Float[Array, " pair"], due: Bool[Array, " pair"]
    ) -> "PathStatistics":
        """Return the statistics with another step's swaps."""
        asked = due.astype(self.asked.dtype)
        both = (self.rejected + asked * rejected, self.asked + asked)
        return eqx.tree_at(lambda s: (s.rejected, s.asked), self, both)

    @property
    def rejections(self) -> Any:
        """The rate at which each pair of neighbors refuses to swap."""
        return self.rejected / self.asked.clip(1)

    def log_normalizer(self, betas: np.ndarray) -> dict[str, Any]:
        """Return log Z by stepping stones, its error, and by integration, in NumPy.

        The way back to the reference ends where the density is positive: it misses the
        reference's mass elsewhere, which is counted. One ladder has an infinite error.
        """
        stones, inverse, inside = self.stones, self.inverse_stones, self.inside
        chains, num_steps = stones.shape[1], float(self.num_steps)

        def bridged(both, inside, num):
            """Return the estimate by the sums over some ladders, there and back."""
            gained = np.sum(np.subtract(*both), axis=0)
            return (gained + np.log(inside) - np.log(num * num_steps)) / 2

        both = (np.logaddexp.reduce(each, axis=1) for each in (stones, inverse))
        value = bridged(both, inside.sum(), chains)
        both = (_sums_without_each(each) for each in (stones, inverse))
        left = bridged(both, inside.sum() - inside, chains - 1)
        error = np.sqrt((chains - 1) * np.var(left)) if chains > 1 else np.inf
        slopes = np.mean(self.log_ratios, axis=1, dtype=float) / num_steps
        area = np.sum((betas[:-1] - betas[1:]) * (slopes[:-1] + slopes[1:])) / 2
        return {"log_z": value, "log_z_thermodynamic": area, "log_z_error": error}


def _sums_without_each(logs: Any) -> np.ndarray:
    """Return, of (pair, chain), the log of the sum over the chains but for each one."""
    before = np.logaddexp.accumulate(logs, axis=1)[:, :-1]
    after = np.logaddexp.accumulate(logs[:, ::-1], axis=1)[:, -2::-1]
    none = np.full((len(logs), 1), -np.inf)
    return np.logaddexp(np.hstack([none, before]), np.hstack([after, none]))
