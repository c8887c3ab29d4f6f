"""Inverse temperatures: ladders, sums over them, and the weights of a step."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from equistein._check_arguments import check_arguments, check_finite_arguments
from equistein._numbers import check_integers, check_positive
from equistein._types import Key, Scalar
from equistein.samplers._geometric_path import PathWalker

_BISECTIONS = 40
_MIN_REJECTION = 1e-3  # rejection of a pair, or temperatures would coincide
_TO_HOT, _TO_TARGET = 1, 2


@check_arguments
def temperatures(kelvin: float | int, hottest: float | int, num: int) -> np.ndarray:
    r"""Return the inverse temperatures of a ladder in K, for `ParallelTempering`.

    $$\beta_k = T_0 / T_k = (T_0 / T_{n - 1})^{k / (n - 1)}$$

    in equal ratios from $T_0$ = `kelvin`, that of the density, to the `hottest`.
    """
    check_integers("`temperatures`", 2, num=num)
    check_positive("`temperatures`", kelvin=kelvin, hottest=hottest)
    if not hottest > kelvin:
        raise ValueError(
            f"`temperatures` needs `hottest` above `kelvin`, {kelvin!r}, that of the "
            f"density, but got {hottest!r}."
        )
    return np.geomspace(1, kelvin / hottest, num)


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
    return interpolate(wanted, barrier, betas).at[0].set(1).at[-1].set(betas[-1])


def interpolate(
    x: Float[Array, " n"], places: Float[Array, " m"], values: Float[Array, " m"]
) -> Float[Array, " n"]:
    """Return the values at x, linearly between rising places: few compiled lines.

    They are summed from the last on, so that small values there are exact.
    """
    widths = jnp.maximum(places[1:] - places[:-1], jnp.finfo(places.dtype).tiny)
    parts = jnp.clip((x[:, None] - places[None, :-1]) / widths[None], 0, 1)
    return values[-1] - jnp.sum((1 - parts) * (values[1:] - values[:-1])[None], axis=1)


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

    The heading is 0 before the first visit to the target, 1 away from it, and 2 back.
    """

    walker: PathWalker
    heading: Int[Array, "temperature chain"]
    round_trips: Int[Array, "temperature chain"]


def swap_neighbors(
    key: Key,
    replicas: Replicas,
    betas: Float[Array, " temperature"],
    parity: Int[Array, ""],
) -> tuple[Replicas, Float[Array, " pair"], Float[Array, " pair"]]:
    """Swap neighbors whose colder temperature has an even, or an odd, number.

    Returns the replicas, the probability that each pair refused, averaged over the
    chains, and 1 for each pair that was asked, 0 for others.
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
    asked = due.astype(chances.dtype)
    return _note_arrivals(replicas), 1 - jnp.mean(chances, axis=1), asked


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
    return Replicas(replicas.walker, heading.at[-1].set(last), trips)


class PathStatistics(eqx.Module):
    r"""Sums over steps.

    The ratio of the normalizers of two neighbors is, for any constant C,

    $$\frac{Z_k}{Z_{k + 1}} = e^C\, \frac{\langle \sigma(\Delta - C) \rangle_{k + 1}}
      {\langle \sigma(C - \Delta) \rangle_k}, \qquad
      \Delta = (\beta_k - \beta_{k + 1}) \log \frac pb, \quad
      \sigma(x) = \frac1{1 + e^{-x}},$$

    with the least error where $e^C$ is the ratio itself: C is what was estimated
    before. As $\sigma$ is bounded, so is the variance, whatever the tails.

    Attributes:
        rejected: The probabilities that each pair of neighbors refuses to swap.
        sums: The logarithms of the sums at the hotter points of each pair, and at the
            colder points.

    References:
        Bennett (1976), Efficient estimation of free energy differences from Monte Carlo
        data; Meng and Wong (1996).
    """

    rejected: Float[Array, " pair"]
    asked: Float[Array, " pair"]
    offsets: Float[Array, " pair"]
    sums: tuple[Float[Array, "pair chain"], Float[Array, "pair chain"]]

    @classmethod
    def empty(cls, chains: int, offsets: Float[Array, " pair"]) -> "PathStatistics":
        """Return the statistics of no step."""
        log_zero = jnp.full((len(offsets), chains), -jnp.inf, offsets.dtype)
        pairs = jnp.zeros_like(offsets)
        return cls(pairs, pairs, offsets, (log_zero, log_zero))

    def with_walkers(
        self, walkers: PathWalker, betas: Float[Array, " temperature"]
    ) -> "PathStatistics":
        """Return the statistics with another step's walkers."""
        ratio, gaps = walkers.log_ratio, (betas[:-1] - betas[1:])[:, None]
        offsets = self.offsets[:, None]
        new = gaps * ratio[1:] - offsets, offsets - gaps * ratio[:-1]
        add = lambda old, x: jnp.logaddexp(old, jax.nn.log_sigmoid(x))
        return dataclasses.replace(self, sums=tuple(map(add, self.sums, new)))

    @property
    def rejections(self) -> Any:
        """The rate at which each pair of neighbors refuses to swap."""
        return self.rejected / self.asked.clip(1)

    def restarted(
        self,
        restarts: Bool[Array, ""],
        betas: Float[Array, " temperature"],
        new: Float[Array, " temperature"],
    ) -> "PathStatistics":
        """Return empty statistics for another ladder, if told to.

        The constants are the ratios between its temperatures, by these statistics.
        """
        sums = (jax.nn.logsumexp(s, axis=1) for s in self.sums)
        ratios = self.offsets + jnp.subtract(*sums)
        ratios = jnp.where(jnp.isfinite(ratios), ratios, self.offsets)
        total = jnp.concatenate([jnp.zeros_like(ratios[:1]), jnp.cumsum(ratios)])
        places = interpolate(-new, -betas, total)
        empty = self.empty(self.sums[0].shape[1], places[1:] - places[:-1])
        pick = lambda new, old: jnp.where(restarts, new, old)
        return jax.tree.map(pick, empty, self)

    def log_normalizer(self, first: tuple[np.ndarray, np.ndarray]) -> dict[str, Any]:
        """Return log Z with its error, and that of the halves, in NumPy.

        The error is the jackknife's over the ladders, infinite for one, or half the
        difference of the halves, of which `first` is one, if that is more.
        """
        chains, halves = self.sums[0].shape[1], np.full(2, np.nan)
        value = lambda both: np.sum(self.offsets) + np.sum(np.subtract(*both), axis=0)
        over_chains = lambda logs: np.logaddexp.reduce(logs, axis=1)
        both = tuple(map(over_chains, self.sums))
        found, left = value(both), value(tuple(map(_sums_without_each, self.sums)))
        error = np.sqrt((chains - 1) * np.var(left)) if chains > 1 else np.inf
        early = tuple(map(over_chains, first))
        if np.all(np.isfinite(early)) and np.all(np.less(early, both)):
            late = [
                b + np.log(-np.expm1(e - b)) for e, b in zip(early, both, strict=True)
            ]
            halves = np.array([value(early), value(late)])
        return {
            "log_z": found,
            "log_z_error": np.fmax(error, np.abs(halves[1] - halves[0]) / 2),
            "log_z_of_halves": halves,
            "log_z_jackknife": error,
        }


def _sums_without_each(logs: Any) -> np.ndarray:
    """Return, of (pair, chain), the log of the sum over the chains but for each one."""
    before = np.logaddexp.accumulate(logs, axis=1)[:, :-1]
    after = np.logaddexp.accumulate(logs[:, ::-1], axis=1)[:, -2::-1]
    none = np.full((len(logs), 1), -np.inf)
    return np.logaddexp(np.hstack([none, before]), np.hstack([after, none]))


def ess_fraction(log_weights: Float[Array, " n"]) -> Scalar:
    """Return the fraction of particles that equal weights would need, from 0 to 1."""
    shares = jax.nn.softmax(log_weights)
    return jnp.nan_to_num(1 / jnp.sum(shares**2), nan=0.0) / len(log_weights)


def next_temperature(
    log_ratios: Float[Array, " particle"],
    log_weights: Float[Array, " particle"],
    beta: Scalar,
    ess_fraction: float | Scalar,
) -> Scalar:
    r"""Return the largest $\beta' \le 1$ that keeps the effective sample size."""

    def enough(new):
        gains = (new - beta) * log_ratios
        first, second = log_weights + gains, log_weights + 2 * gains
        log_size = 2 * jax.nn.logsumexp(first) - jax.nn.logsumexp(second)
        return jnp.exp(log_size) >= ess_fraction

    def bisect(_, bounds):
        low, high = bounds
        middle = (low + high) / 2
        good = enough(middle)
        return jnp.where(good, middle, low), jnp.where(good, high, middle)

    one = jnp.ones_like(beta)
    low, high = jax.lax.fori_loop(0, _BISECTIONS, bisect, (beta, one))
    # Where so few particles are left that no step is short enough, the shortest is it.
    low = jnp.where(low > beta, low, high)
    return jnp.where(enough(one), one, low)


@check_finite_arguments
def systematic_resampling(
    key: Key, weights: Float[Array, " particle"]
) -> Int[Array, " particle"]:
    """Choose as many particles by their weights: equal steps from one random start.

    Each is chosen as often as its weight says, rounded down or up.
    """
    num = len(weights)
    ticks = jnp.arange(num, dtype=weights.dtype) + jr.uniform(key, (), weights.dtype)
    edges = jnp.cumsum(weights)
    chosen = jnp.searchsorted(edges / edges[-1], ticks / num)
    return jnp.minimum(chosen, num - 1).astype(int)
