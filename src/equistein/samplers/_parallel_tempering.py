"""Parallel tempering: chains at several temperatures that swap their points."""

import dataclasses
from typing import Any, cast, ClassVar

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
from equistein.kernels import Preconditioner
from equistein.samplers._base import cond_if_any_run
from equistein.samplers._geometric_path import (
    AbstractReference,
    FittedNormal,
    GeometricPath,
    PathWalker,
)
from equistein.samplers._ladder import (
    check_ladder,
    equal_rejection,
    PathStatistics,
    Replicas,
    swap_neighbors,
    systematic_resampling,
)
from equistein.samplers._markov_chains import (
    AbstractMarkovChains,
    AbstractPathSampler,
    ChainParameters,
    is_round_end,
    last_round,
    NUM_ADAPT,
)
from equistein.samplers._metropolis import HMC
from equistein.samplers._steps import rms

_WIDER = 2.0  # the reference than the target's chains, when both are known
_MOST_SPREAD = 0.7  # of log weights: about half of the chains, or more, are chosen
_MOST_GROWTH = 4.0  # of the target's spread in a round, that the next may repeat


class TemperingState(eqx.Module):
    """What the next step needs; replicas have shape (temperature, chain)."""

    particles: Particles
    replicas: Replicas
    parameters: ChainParameters
    inverse_temperatures: Float[Array, " temperature"]
    reference: PyTree
    statistics: PathStatistics
    # The sums when half as many steps as adapted were measured.
    first_half: tuple[Float[Array, "pair chain"], Float[Array, "pair chain"]]
    evaluations: Int[Array, ""]
    num_adapt: Int[Array, ""]
    step: Int[Array, ""]


class TemperingInfo(eqx.Module):
    """What a step was like: density, acceptance and update are of the target's chains.

    `rejections` are the rates at which neighbors refused to swap so far, `barrier` is
    their sum; `evaluations` and `undefined` count those at all temperatures.
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

    At $\beta = 0$ the chain is an independent sample of the reference in each step. The
    first `num_adapt` steps learn, in rounds, each as long as all before it. After a
    round the ladder moves so that all neighbors refuse equally often, the metric of
    each temperature becomes the covariance of its chains, and the reference a normal
    density around the target's chains: wider than the start at first, to find modes
    beyond it, and at last twice as wide as the chains. The chains are resampled by what
    that changes of their densities. Step sizes adapt all the time.
    Then all is kept, and the distribution is exact. From then on `Samples.summary`
    measures $\log Z$, if the ladder ends at 0. With several modes, take more
    temperatures than twice the `barrier`, the sum of the rejection rates.

    Args:
        inner: What moves the chains: `HMC()` by default, `MALA`, or one of
            `from_blackjax`.
        inverse_temperatures: The ladder, from 1 down; to 0, or to where the density
            has no barriers left. None for `num_temperatures` that adapt, from 1 to 0.
        num_temperatures: Their number, where the ladder is not given.
        reference: The density at $\beta = 0$, on the chains' subspace; by default a
            normal one that is learned, as a `FittedNormal` is, or of points with
            several axes or a projection fitted to the start. A ladder that ends above 0
            has none.
        num_adapt: The number of steps that adapt; by default half of a run's.

    References:
        Syed, Bouchard-Côté, Deligiannidis and Doucet (2022), Non-reversible parallel
        tempering: a scalable highly parallel MCMC scheme.
    """

    inner: AbstractMarkovChains
    inverse_temperatures: Float[Array, " temperature"]
    reference: AbstractReference | None
    num_adapt: int | Int[Array, ""] | None
    adapts_ladder: bool
    reaches_reference: bool
    reach: ClassVar[float] = 10.0

    def __init__(
        self,
        inner: AbstractMarkovChains | None = None,
        inverse_temperatures: Any = None,
        *,
        num_temperatures: int = 12,
        reference: AbstractReference | None = None,
        num_adapt: int | None = None,
    ):
        self.adapts_ladder = inverse_temperatures is None
        if num_adapt is not None:
            least = 4 if self.adapts_ladder else 0
            check_integers("ParallelTempering", least, num_adapt=num_adapt)
        if self.adapts_ladder:
            check_integers("ParallelTempering", 2, num_temperatures=num_temperatures)
            # From 1 to 0, closest at the hot end.
            ladder = np.linspace(1, 0, num_temperatures) ** 4
        else:
            ladder = check_ladder(inverse_temperatures, reference)
        self.inner = HMC() if inner is None else inner
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
        parameters = self._parameters(x, num)
        num_adapt = NUM_ADAPT if self.num_adapt is None else self.num_adapt
        statistics = PathStatistics.empty(chains, jnp.zeros(num - 1, x.dtype))
        replicas = Replicas(jax.tree.map(repeat, walkers), nowhere, nowhere)
        return TemperingState(
            x, replicas, parameters, self.inverse_temperatures.astype(x.dtype),
            eqx.filter(reference, eqx.is_array), statistics, statistics.sums, zero + 1,
            jnp.asarray(num_adapt, int), zero,
        )  # fmt: skip

    def log_densities(self, state: TemperingState) -> Float[Array, " particle"]:
        return state.replicas.walker.value[0]

    @accept_integer_key
    def step(
        self, key: Key, state: TemperingState, log_density: LogDensity
    ) -> tuple[TemperingState, TemperingInfo]:
        num = len(state.inverse_temperatures)
        swap_key, *keys = jr.split(key, 1 + num)
        path = self._path(log_density, state.particles, state.reference)
        betas, num_adapt, step = state.inverse_temperatures, state.num_adapt, state.step
        moved = self._step_all(jnp.stack(keys), path, state)
        walkers, chances, evaluations, undefined = moved
        statistics = state.statistics
        if self.reaches_reference:
            statistics = statistics.with_walkers(walkers, betas)
        replicas = eqx.tree_at(lambda r: r.walker, state.replicas, walkers)
        replicas, rejected, asked = swap_neighbors(swap_key, replicas, betas, step % 2)
        sums = (statistics.rejected + asked * rejected, statistics.asked + asked)
        statistics = eqx.tree_at(lambda s: (s.rejected, s.asked), statistics, sums)
        rejections, x = statistics.rejections, replicas.walker.point[0]
        rates = jnp.mean(chances, axis=1)
        parameters = jax.vmap(self.inner.learn, (0, 0, 0, None, None))(
            state.parameters, rates, replicas.walker.point, step + 1, num_adapt
        )
        half = step + 1 == num_adapt + num_adapt // 2
        pick = lambda new, old: jnp.where(half, new, old)
        first_half = jax.tree.map(pick, statistics.sums, state.first_half)
        spent = state.evaluations + evaluations
        new = TemperingState(
            x, replicas, parameters, betas, state.reference, statistics, first_half,
            spent, num_adapt, step + 1,
        )  # fmt: skip
        new = self._learned(jr.fold_in(swap_key, 0), new, log_density)
        info = TemperingInfo(
            jnp.mean(self.log_densities(state)), jnp.mean(chances[0]),
            rms(x - state.particles), new.inverse_temperatures, rejections,
            jnp.sum(rejections), jnp.sum(replicas.round_trips), spent, undefined,
        )  # fmt: skip
        return new, info

    def _learned(
        self, key: Key, state: TemperingState, log_density: LogDensity
    ) -> TemperingState:
        """Return the state with a new ladder, reference and chains, if a round ends."""
        parameters, betas = state.parameters, state.inverse_temperatures
        ends, _ = is_round_end(state.step, state.num_adapt)
        reference, walkers = state.reference, state.replicas.walker
        ladder, base = betas, cast(Any, self._base(state.particles))
        if self.adapts_ladder:
            ladder = equal_rejection(betas, state.statistics.rejections)
            ladder = jnp.where(ends, ladder, betas)
        is_fitted = isinstance(base, FittedNormal) and parameters.metric is not None

        def learned():
            reference, new = state.reference, walkers
            if is_fitted:
                target = jax.tree.map(lambda leaf: leaf[0], parameters.metric)
                reference = base.refit(self._widened(target, state))
                path = GeometricPath(log_density, reference)
                values = jax.vmap(jax.vmap(path.of_reference))(walkers.point)
                where = lambda w: (w.reference_value, w.reference_score)
                new = eqx.tree_at(where, walkers, values)
            keys = jr.split(key, len(betas))
            return reference, jax.vmap(_resampled)(keys, walkers, betas, new, ladder)

        if self.adapts_ladder or is_fitted:
            reference, walkers = cond_if_any_run(ends, learned, (reference, walkers))
        begins = ends | (state.step == state.num_adapt)
        return dataclasses.replace(
            state,
            particles=walkers.point[0],
            inverse_temperatures=ladder,
            reference=reference,
            replicas=eqx.tree_at(lambda r: r.walker, state.replicas, walkers),
            statistics=state.statistics.restarted(begins, betas, ladder),
        )

    def _widened(self, metric: Preconditioner, state: TemperingState) -> Preconditioner:
        """Return a wider metric, for the reference: in each round less wide."""
        # Where the chains spread in the last round, they may spread as much again.
        last = last_round(state.num_adapt).astype(metric.center.dtype)
        left = 1 - state.step.astype(last.dtype) / last
        reach = self.reach if self.reference is None else _WIDER
        wider = _WIDER * (reach / _WIDER) ** left
        return metric.scaled(wider * jnp.clip(metric.growth, 1, _MOST_GROWTH))

    def summary(self, state: TemperingState) -> dict[str, Any]:
        """Return the ladder, how points travel in it, and log Z.

        `log_z` is by bridges between neighbors; its error is the jackknife's over the
        ladders, infinite where there is only one or none was measured, or half the
        difference between the halves of the run, if that is more. Without a step after
        the adaptation it is NaN.
        """
        as_floats = lambda tree: jax.tree.map(lambda x: np.asarray(x, float), tree)
        statistics, first = as_floats((state.statistics, state.first_half))
        found = {
            "inverse_temperatures": np.asarray(state.inverse_temperatures),
            "rejections": statistics.rejections,
            "barrier": np.sum(statistics.rejections),
            "round_trips": np.sum(np.asarray(state.replicas.round_trips), axis=0),
        }
        if not self.reaches_reference:
            return found
        if int(state.step) > int(state.num_adapt):
            return found | statistics.log_normalizer(first)
        return found | {"log_z": np.nan, "log_z_error": np.inf}

    def _step_all(
        self, keys: Keys, path: GeometricPath, state: TemperingState
    ) -> tuple[PathWalker, Float[Array, "temperature chain"], Array, Array]:
        """Move each chain; at the reference, draw it again."""
        walkers, betas = state.replicas.walker, state.inverse_temperatures
        num, chains = walkers.value.shape
        num_moving = num - 1 if self.reaches_reference else num
        moving = keys, walkers, betas, state.parameters
        keys_of, *moving = jax.tree.map(lambda leaf: leaf[:num_moving], moving)
        move_all = jax.vmap(self.inner.move_all, (0, None, 0, 0, 0))
        new, chances, spent, defined = move_all(keys_of, path, *moving)
        spent = jnp.round(jnp.mean(jnp.sum(spent, axis=0).astype(float))).astype(int)
        if not self.reaches_reference:
            return new, chances, spent, jnp.sum(~defined)
        drawn = path.start(keys[-1], chains, walkers.point.dtype)
        append = lambda leaf, last: jnp.concatenate([leaf, last[None]])
        new = jax.tree.map(append, new, drawn)
        one = jnp.ones_like(chances[0])
        return new, append(chances, one), spent + 1, jnp.sum(~defined)


def _resampled(
    key: Key, old: PathWalker, old_beta: Scalar, new: PathWalker, beta: Scalar
) -> PathWalker:
    """Return the chains of a temperature whose density changed, chosen by weights."""
    # Else points far out, where a reference that became narrower has hardly any weight,
    # would all swap to the target at once, and stay in its tails.
    value = lambda w, beta: (1 - beta) * w.reference_value + beta * w.value
    gains = value(new, beta) - value(old, old_beta)
    gains = jnp.where(jnp.isfinite(gains), gains, 0)
    power = jnp.minimum(1, _MOST_SPREAD / (jnp.std(gains) + 1e-30))
    chosen = systematic_resampling(key, jax.nn.softmax(power * gains))
    return jax.tree.map(lambda leaf: leaf[chosen], new)
