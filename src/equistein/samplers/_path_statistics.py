"""What chains along a path measure: rejections, and log Z."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float

from equistein._types import Scalar
from equistein.samplers._geometric_path import PathWalker


class PathStatistics(eqx.Module):
    """Sums over steps.

    Attributes:
        rejected: Of each pair of neighbors, of the probabilities to refuse a swap.
        asked: How often each pair was asked.
        log_ratios: Of the log ratio of target and reference, of each chain.
        stones: The logarithms of the sums of the ratios of the densities at neighboring
            temperatures, at the hotter one's points, of each ladder.
        inverse_stones: Those of the inverse ratios, at the colder one's points.
        inside: How often the hottest point of each ladder had positive density.
        num_steps: The number of steps that walkers were looked at.
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
        none = stones - jnp.inf
        ratios = jnp.zeros((num, chains), dtype)
        return cls(pairs, pairs, ratios, none, none, ratios[0], jnp.zeros((), dtype))

    def restarted(self, now: Bool[Array, ""]) -> "PathStatistics":
        """Return empty statistics if it is time, else these."""
        num, chains = self.log_ratios.shape
        empty = PathStatistics.empty(num, chains, self.num_steps.dtype)
        return jax.tree.map(lambda new, old: jnp.where(now, new, old), empty, self)

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
    def rejections(self) -> Float[Array, " pair"]:
        """The rate at which each pair of neighbors refuses to swap."""
        return self.rejected / jnp.maximum(self.asked, 1)

    def log_normalizer(
        self, betas: Float[Array, " temperature"], measured: Bool[Array, ""]
    ) -> dict[str, Scalar]:
        """Return log Z by stepping stones, its error, and by integration.

        The way back to the reference ends where the density is positive: it misses the
        reference's mass elsewhere, which is counted.

        Args:
            betas: The ladder, which must have been the same in all steps.
            measured: Whether it was; if not, all are infinite.
        """
        chains = self.stones.shape[1]
        log_steps = jnp.log(self.num_steps)

        def bridged(some):
            """Return the estimate of some ladders."""
            log_size = jnp.log(float(len(some))) + log_steps
            mean = lambda sums: logsumexp(sums[:, some], axis=1) - log_size
            inside = jnp.log(jnp.sum(self.inside[some])) - log_size
            gained = mean(self.stones) - mean(self.inverse_stones)
            return (jnp.sum(gained) + inside) / 2

        value = bridged(jnp.arange(chains))
        slopes = jnp.mean(self.log_ratios, axis=1) / self.num_steps
        area = jnp.sum((betas[:-1] - betas[1:]) * (slopes[:-1] + slopes[1:])) / 2
        error = jnp.asarray(jnp.inf, value.dtype)
        if chains > 1:
            # The jackknife: without each ladder in turn.
            others = jnp.arange(chains)[:, None] + jnp.arange(1, chains)[None]
            left = jax.lax.map(bridged, others % chains)
            error = jnp.sqrt((chains - 1) * jnp.mean((left - jnp.mean(left)) ** 2))
        found = {"log_z": value, "log_z_thermodynamic": area}
        found = {name: jnp.where(measured, x, jnp.nan) for name, x in found.items()}
        return found | {"log_z_error": jnp.where(measured, error, jnp.inf)}
