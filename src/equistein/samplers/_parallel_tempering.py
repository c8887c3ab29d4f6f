"""Parallel tempering: chains at several temperatures that swap their points."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from equistein._arrays import on_device
from equistein._check_arguments import accept_integer_key, check_arguments
from equistein._numbers import check_integers
from equistein._types import Key, Keys, LogDensity, Particles, Scalar
from equistein.samplers._base import cond_if_any_run
from equistein.samplers._geometric_path import (
    AbstractReference,
    GeometricPath,
    PathWalker,
)
from equistein.samplers._ladder import (
    check_ladder,
    equal_rejection,
    first_ladder,
    is_round_end,
    PathStatistics,
    Replicas,
    swap_neighbors,
)
from equistein.samplers._markov_chains import (
    AbstractMarkovChains,
    AbstractPathSampler,
    ChainParameters,
)
from equistein.samplers._steps import rms


class TemperingState(eqx.Module):
    """What the next step needs; replicas have shape (temperature, chain)."""

    particles: Particles
    replicas: Replicas
    parameters: ChainParameters
    inverse_temperatures: Float[Array, " temperature"]
    reference: PyTree
    statistics: PathStatistics
    evaluations: Int[Array, ""]
    step: Int[Array, ""]


class TemperingInfo(eqx.Module):
    """What a step was like.

    Density, acceptance and update are those of the target's chains; `rejections` are
    the rates at which neighbors refused to swap so far, and `barrier` is their sum.
    At all temperatures, `evaluations` counts those of the score for each ladder, and
    `undefined` the moves of this step to where the log density is NaN.
    """

    log_density: Scalar
    acceptance: Scalar
    update_norm: Scalar
    inverse_temperatures: Float[Array, " temperature"]
    rejections: Float[Array, " pair"]
    barrier: Scalar
    round_trips: Int[Array, ""]
    evaluations: Int[Array, ""]
    undefined: Int[Array, ""]


@check_arguments
class ParallelTempering(AbstractPathSampler[TemperingState, TemperingInfo]):
    r"""Chains at several temperatures that swap their points with their neighbors.

    Each particle is the cold end of a ladder of chains, one for each
    $1 = \beta_0 > \beta_1 > \dots$, whose densities lie on the path
    $b(x)^{1 - \beta} p(x)^\beta$ from a reference $b$ to the target $p$.
    A step moves each chain once, then swaps neighbors, the even and the odd pairs in
    turn, with probability

    $$\min\Bigl(1, \Bigl[\frac{p(x_{k + 1})\, b(x_k)}{b(x_{k + 1})\, p(x_k)}
      \Bigr]^{\beta_k - \beta_{k + 1}}\Bigr).$$

    At $\beta = 0$ the chain is an independent sample of the reference in each step. In
    the first `num_adapt` steps the ladder moves so that all neighbors refuse equally
    often, and the step sizes adapt; then both are kept, and the distribution is exact.
    From then on `Samples.summary` measures $\log Z$, if the ladder ends at 0. With
    several modes, take more temperatures than twice the `barrier`, the sum of the
    rejection rates.

    Args:
        inner: What moves the chains: `MALA`, or one of `from_blackjax`.
        inverse_temperatures: The ladder, from 1 down; to 0, or to where the density
            has no barriers left. None for `num_temperatures` that adapt, from 1 to 0.
        num_temperatures: Their number, where the ladder is not given.
        reference: The density at $\beta = 0$, on the chains' subspace; by default a
            normal one fitted to the start. A ladder that ends above 0 has none.
        num_adapt: The number of steps that adapt.

    References:
        Syed, Bouchard-Côté, Deligiannidis and Doucet (2022), Non-reversible parallel
        tempering: a scalable highly parallel MCMC scheme.
    """

    inner: AbstractMarkovChains
    inverse_temperatures: Float[Array, " temperature"]
    reference: AbstractReference | None
    num_adapt: int
    adapts_ladder: bool
    reaches_reference: bool

    def __init__(
        self,
        inner: AbstractMarkovChains,
        inverse_temperatures: Any = None,
        *,
        num_temperatures: int = 12,
        reference: AbstractReference | None = None,
        num_adapt: int = 1_000,
    ):
        self.adapts_ladder = inverse_temperatures is None
        least = 4 if self.adapts_ladder else 0
        check_integers("ParallelTempering", least, num_adapt=num_adapt)
        if self.adapts_ladder:
            check_integers("ParallelTempering", 2, num_temperatures=num_temperatures)
            ladder = first_ladder(num_temperatures)
        else:
            ladder = check_ladder(inverse_temperatures, reference)
        self.inner = inner
        self.inverse_temperatures = on_device(ladder.astype(float))
        self.reaches_reference = bool(ladder[-1] == 0)
        self.reference = reference
        self.num_adapt = num_adapt

    def init(self, particles: Particles, log_density: LogDensity) -> TemperingState:
        """Build the state; every ladder starts at its particle throughout."""
        x = jax.vmap(self.inner.project)(particles)
        num, chains = len(self.inverse_temperatures), len(x)
        reference, zero = self._base(x), jnp.zeros((), int)
        walkers = jax.vmap(GeometricPath(log_density, reference).evaluate)(x)
        repeat = lambda leaf: jnp.broadcast_to(leaf[None], (num, *leaf.shape))
        nowhere = jnp.zeros((num, chains), int)
        replicas = Replicas(jax.tree.map(repeat, walkers), nowhere, nowhere)
        return TemperingState(
            x, replicas, self._parameters(x, num),
            self.inverse_temperatures.astype(x.dtype),
            eqx.filter(reference, eqx.is_array),
            PathStatistics.empty(num, chains, x.dtype), zero + 1, zero,
        )  # fmt: skip

    def log_densities(self, state: TemperingState) -> Float[Array, " particle"]:
        return state.replicas.walker.value[0]

    @accept_integer_key
    def step(
        self, key: Key, state: TemperingState, log_density: LogDensity
    ) -> tuple[TemperingState, TemperingInfo]:
        num = len(state.inverse_temperatures)
        keys = jr.split(key, 2 + num)  # to tune, to swap, and of each temperature
        path = self._path(log_density, state.particles, state.reference)
        betas, is_adapting = state.inverse_temperatures, state.step < self.num_adapt
        walkers, log_densities = state.replicas.walker, self.log_densities(state)
        due = state.step == 0
        if self.adapts_ladder:  # and after it moves for the last time
            due |= state.step == self.num_adapt // 2
        parameters, tuning = self._tune_if(
            due, keys[0], path, walkers.point, betas, state.parameters
        )
        walkers, chances, evaluations, undefined = self._step_all(
            keys[2:], path, walkers, betas, parameters
        )
        adapted = jax.vmap(self.inner.adapt)(parameters, jnp.mean(chances, axis=1))
        if_adapting = lambda new, old: jnp.where(is_adapting, new, old)
        statistics = state.statistics
        if self.reaches_reference:
            statistics = statistics.with_walkers(walkers, betas)
        replicas = eqx.tree_at(lambda r: r.walker, state.replicas, walkers)
        replicas, rejected, due = swap_neighbors(
            keys[1], replicas, betas, state.step % 2
        )
        statistics = statistics.with_swaps(rejected, due)
        rejections, step = statistics.rejections, state.step + 1
        moves = is_round_end(step, self.num_adapt) & self.adapts_ladder
        new_round = lambda: (
            jnp.where(moves, equal_rejection(betas, rejections), betas),
            PathStatistics.empty(num, len(state.particles), betas.dtype),
        )
        ends = moves | (step == self.num_adapt)
        betas, statistics = cond_if_any_run(ends, new_round, (betas, statistics))
        x = replicas.walker.point[0]
        spent = state.evaluations + jnp.sum(tuning) + evaluations
        new = TemperingState(
            x, replicas, jax.tree.map(if_adapting, adapted, parameters), betas,
            state.reference, statistics, spent, step,
        )  # fmt: skip
        info = TemperingInfo(
            jnp.mean(log_densities), jnp.mean(chances[0]),
            rms(x - state.particles), betas, rejections, jnp.sum(rejections),
            jnp.sum(replicas.round_trips), spent, undefined,
        )  # fmt: skip
        return new, info

    def summary(self, state: TemperingState) -> dict[str, Any]:
        """Return the ladder, how points travel in it, and log Z.

        `log_z` is by stepping stones, both ways; its error is the jackknife's over the
        ladders, infinite where there is only one or none was measured.
        `log_z_thermodynamic` integrates the mean log ratio by the trapezoid rule.
        Without a step after the adaptation they are NaN.
        """
        statistics = jax.tree.map(lambda x: np.asarray(x, float), state.statistics)
        betas = np.asarray(state.inverse_temperatures)
        found = {
            "inverse_temperatures": betas,
            "rejections": statistics.rejections,
            "barrier": np.sum(statistics.rejections),
            "round_trips": np.sum(np.asarray(state.replicas.round_trips), axis=0),
        }
        if not self.reaches_reference:
            return found
        if int(state.step) > self.num_adapt:
            return found | statistics.log_normalizer(betas)
        unknown = dict.fromkeys(("log_z", "log_z_thermodynamic"), np.nan)
        return found | unknown | {"log_z_error": np.inf}

    def _step_all(
        self,
        keys: Keys,
        path: GeometricPath,
        walkers: PathWalker,
        betas: Float[Array, " temperature"],
        parameters: ChainParameters,
    ) -> tuple[PathWalker, Float[Array, "temperature chain"], Array, Array]:
        """Move each chain; at the reference, draw it again."""
        num, chains = walkers.value.shape
        num_moving = num - 1 if self.reaches_reference else num
        some = lambda tree: jax.tree.map(lambda leaf: leaf[:num_moving], tree)
        move_all = jax.vmap(self.inner.move_all, (0, None, 0, 0, 0))
        moving = some(walkers), some(betas), some(parameters)
        new, chances, spent, defined = move_all(some(keys), path, *moving)
        spent = jnp.round(jnp.mean(jnp.sum(spent, axis=0).astype(float))).astype(int)
        if not self.reaches_reference:
            return new, chances, spent, jnp.sum(~defined)
        drawn = path.start(keys[-1], chains, walkers.point.dtype)
        append = lambda leaf, last: jnp.concatenate([leaf, last[None]])
        new = jax.tree.map(append, new, drawn)
        one = jnp.ones_like(chances[0])
        return new, append(chances, one), spent + 1, jnp.sum(~defined)
