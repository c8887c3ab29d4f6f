"""Annealed sequential Monte Carlo: particles that are weighed, chosen and moved."""

import dataclasses
import math
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from equistein._check_arguments import accept_integer_key, check_arguments
from equistein._numbers import check_integers
from equistein._types import Key, LogDensity, Particles, Scalar
from equistein.samplers._base import cond_if_any_run
from equistein.samplers._geometric_path import (
    AbstractReference,
    FittedNormal,
    GeometricPath,
    PathWalker,
)
from equistein.samplers._ladder import (
    ess_fraction,
    next_temperature,
    systematic_resampling,
)
from equistein.samplers._markov_chains import (
    AbstractMarkovChains,
    AbstractPathSampler,
    ChainParameters,
)
from equistein.samplers._metropolis import HMC
from equistein.samplers._steps import check_fraction, rms

_PILOTS = 4  # at most, to learn the reference
_GROWS = 1.1  # times as wide as the last pilot's particles: another one follows
_PILOT_ESS, _MOST_ESS = 0.67, 0.99  # aimed at by a pilot, and after it at most
_NUM_ADAPT = 50  # where the number of steps is not known
_WIDER, _MOST_GROWTH = 2.0, 4.0  # the reference than particles, that widths grow again
_MOST_RUNS, _FEWEST_RUNS = 8, 4  # by default
_MOST_MOVES = 20  # a step, where particles do not forget where they were
_FORGOTTEN = 0.1  # largest correlation of a coordinate before and after the moves
_RUN = "run"  # the axis of populations, which choose together, or log Z is biased
_SLOW = 0.01  # change of that correlation in a move that is none


class SMCState(eqx.Module):
    """What the next step needs; walkers have shape (run, member of the run)."""

    particles: Particles
    walkers: PathWalker
    log_weights: Float[Array, "run member"]
    inverse_temperatures: Float[Array, " run"]
    log_normalizers: Float[Array, " run"]
    parameters: ChainParameters
    reference: PyTree
    pilots: Int[Array, ""]  # left, to learn the reference
    num_adapt: Int[Array, ""]
    ess_fraction: Scalar  # aimed at
    num_temperatures: Int[Array, ""]  # on the way from the reference, so far
    begins: Bool[Array, ""]  # at the reference, in the next step
    landed: Particles  # when all runs had reached the target; infinite before
    evaluations: Int[Array, ""]
    step: Int[Array, ""]


class SMCInfo(eqx.Module):
    """What a step was like; of the worst run, before resampling, `ess_fraction`."""

    log_density: Scalar
    acceptance: Scalar
    update_norm: Scalar
    inverse_temperature: Scalar
    ess_fraction: Scalar
    evaluations: Int[Array, ""]
    undefined: Int[Array, ""]


@check_arguments
class AnnealedSMC(AbstractPathSampler[SMCState, SMCInfo]):
    r"""Particles that go from a reference to the target, weighted, resampled and moved.

    The particles begin as exact samples of the reference $b$ and follow the path
    $b^{1 - \beta} p^\beta$. A step takes the next $\beta'$, at which the conditional
    effective sample size

    $$\frac{n \bigl(\sum_i W_i w_i\bigr)^2}{\sum_i W_i w_i^2}, \qquad
      w_i = \Bigl[\frac{p(x_i)}{b(x_i)}\Bigr]^{\beta' - \beta},$$

    is `ess_fraction` of the particles, multiplies the weights W by w and the estimate
    of Z by $\sum_i W_i w_i$, resamples systematically where the effective number is
    below half (and where the target is reached, so that the end has equal weights), and
    moves each particle until they have forgotten where they were: until no coordinate
    correlates more than .1 with that before the moves, or that changes no more. The
    metric of the moves is the covariance of another run's particles. `Samples.summary`
    holds log Z, the weights, and the temperatures, which are hotter if steps ran out.

    The default reference is learned in the first `num_adapt` steps, or more: pilots go
    the same way with fewer temperatures, until they spread no more, and the reference
    becomes twice as wide as they are. Then twice as many steps go along the path, or
    fewer: a longer run has a smaller error.

    The particles are `num_runs` populations with the same temperatures; the spread of
    their log Z gives its error. The start says how many, and without `reference` where.

    Args:
        inner: What moves the particles: `HMC()` by default, `MALA`, or one of
            `from_blackjax`.
        reference: The density at $\beta = 0$, on the chains' subspace. By default a
            normal one, at first three times as wide as the start, then learned; of
            points with several axes or a projection, as wide as the start.
        num_runs: The number of populations, which divides that of the particles; by
            default at most eight and at least four.
        num_moves: The number of moves a step; None until the particles have forgotten.
        num_adapt: The number of steps that learn the reference, if it is; by default a
            quarter of a run's.
        ess_fraction: The conditional effective sample size aimed at. By default so that
            twice `num_adapt` steps reach the target, at most .99; .95 where no
            reference is learned.

    References:
        Del Moral, Doucet and Jasra (2006), Sequential Monte Carlo samplers; Zhou,
        Johansen and Aston (2016) for the conditional effective sample size.
    """

    inner: AbstractMarkovChains = HMC()  # noqa: RUF009  it is immutable
    _: dataclasses.KW_ONLY
    reference: AbstractReference | None = None
    num_runs: int | None = None
    num_moves: int | None = None
    num_adapt: int | Int[Array, ""] | None = None
    ess_fraction: float | None = None
    reaches_reference: bool = eqx.field(default=True, init=False)
    reach: ClassVar[float] = 3.0
    adapts: ClassVar[int] = 4

    def __check_init__(self):
        for name in ("num_runs", "num_moves", "num_adapt"):
            if not isinstance(given := getattr(self, name), jax.Array | None):
                check_integers("AnnealedSMC", **{name: given})
        if self.ess_fraction is not None:
            check_fraction("AnnealedSMC", ess_fraction=self.ess_fraction)

    def init(self, particles: Particles, log_density: LogDensity) -> SMCState:
        """Build the state; the first step replaces the particles by the reference's."""
        num, num_runs = len(particles), self.num_runs
        if num_runs is None:
            some = range(_MOST_RUNS, _FEWEST_RUNS, -1)
            fits = (r for r in some if num % r == 0 and num >= 2 * r)
            num_runs = next(fits, _FEWEST_RUNS)
        if num % num_runs or num < 2 * num_runs:
            raise ValueError(
                f"AnnealedSMC needs at least two `particles` for each of its "
                f"{num_runs} runs, and equally many for each, but got {num}."
            )
        x = jax.vmap(self.inner.project)(particles)
        parameters, base = self._parameters(x, num_runs), self._base(x)
        pilots = _PILOTS if isinstance(base, FittedNormal) else 0
        zero, of_runs = jnp.zeros((), int), jnp.zeros(num_runs, x.dtype)
        num_adapt = _NUM_ADAPT if self.num_adapt is None else self.num_adapt
        size = _PILOT_ESS if pilots else self.ess_fraction or 0.95
        walkers = jax.vmap(GeometricPath(log_density, base).evaluate)(x)
        walkers = _by_run(walkers, num_runs)
        return SMCState(
            x, walkers, jnp.full_like(walkers.value, -math.log(num // num_runs)),
            of_runs, of_runs, parameters, eqx.filter(base, eqx.is_array), zero + pilots,
            zero + num_adapt, jnp.asarray(size, x.dtype), zero, jnp.ones((), bool),
            jnp.full_like(x, jnp.inf), zero + 1, zero,
        )  # fmt: skip

    def log_densities(self, state: SMCState) -> Float[Array, " particle"]:
        return state.walkers.value.ravel()

    @accept_integer_key
    def step(
        self, key: Key, state: SMCState, log_density: LogDensity
    ) -> tuple[SMCState, SMCInfo]:
        path = self._path(log_density, state.particles, state.reference)
        draw_key, *keys = jr.split(key, 1 + len(state.log_normalizers))

        def drawn():  # in the first step the walkers are samples of the reference
            num, dtype = len(state.particles), state.particles.dtype
            return _by_run(path.start(draw_key, num, dtype), len(keys))

        walkers = cond_if_any_run(state.begins, drawn, state.walkers)
        runs, (shares, rates, spent, undefined) = jax.vmap(
            lambda *run: self._one_run(path, state.ess_fraction, *run), axis_name=_RUN
        )(
            jnp.stack(keys), walkers, state.log_weights, state.inverse_temperatures,
            state.log_normalizers, state.parameters,
        )  # fmt: skip
        walkers, log_weights, betas, log_z, parameters = runs
        if parameters.metric is not None:
            parameters = _with_metrics(parameters, walkers.point, log_weights)
        x = walkers.point.reshape(state.particles.shape)
        spent = jnp.round(jnp.mean(spent.astype(float))).astype(int)
        evaluations = state.evaluations + spent + state.begins.astype(int)
        below = jnp.any(state.inverse_temperatures < 1)
        lands = jnp.all(betas == 1) & below
        new = SMCState(
            x, walkers, log_weights, betas, log_z, parameters, state.reference,
            state.pilots, state.num_adapt, state.ess_fraction,
            state.num_temperatures + below.astype(int), jnp.zeros((), bool),
            jnp.where(lands, x, state.landed), evaluations, state.step + 1,
        )  # fmt: skip
        if isinstance(path.reference, FittedNormal):
            new = self._after_pilot(new, path.reference)
        value = jnp.mean(walkers.value, where=jnp.isfinite(walkers.value))
        info = SMCInfo(
            jnp.nan_to_num(value), jnp.mean(rates), rms(x - state.particles),
            jnp.min(new.inverse_temperatures), jnp.min(shares), evaluations,
            jnp.sum(undefined),
        )  # fmt: skip
        return new, info

    @np.errstate(invalid="ignore")  # where all weights are zero
    def summary(self, state: SMCState) -> dict[str, Any]:
        """Return the temperatures reached, the weights, and log Z with its error.

        The mean of the runs' estimates of Z up to the temperature reached, and the
        error of that mean, infinite for one run; both in logarithms. It is the standard
        error, larger as Student's t is wider than a normal density for so few runs.
        """
        each = np.asarray(state.log_normalizers, float)
        runs = len(each)
        total, weights = np.logaddexp.reduce(each), np.asarray(state.log_weights)
        shares = runs * np.exp(each - total)
        error = np.inf
        if runs > 1:
            from scipy.special import stdtrit  # a tenth of a second

            spread = max(np.std(shares, ddof=1), np.std(each, ddof=1))
            error = spread / runs**0.5 * stdtrit(runs - 1, 0.975) / stdtrit(1e9, 0.975)
        weights = np.exp(weights - np.logaddexp.reduce(weights, axis=1, keepdims=True))
        return {
            "inverse_temperatures": state.inverse_temperatures,
            "weights": weights.ravel() / runs,
            "log_z": total - np.log(runs),
            "log_z_error": error,
            "log_z_of_runs": each,
        }

    def _after_pilot(self, state: SMCState, reference: FittedNormal) -> SMCState:
        """Return the state at the beginning again, if a pilot is at the target."""
        # The first has half of the time. Another one follows where the particles are
        # wider than those before; the reference is twice as wide, or more.
        first = state.pilots == _PILOTS
        is_time = state.step >= state.num_adapt // jnp.where(first, 2, 1)
        arrives = jnp.all(state.inverse_temperatures == 1)
        ends = (state.pilots > 0) & arrives & is_time

        def learned():
            old, x = reference.metric, state.particles
            metric = old.updated(old.sums(x), len(x))
            wider = _WIDER * jnp.clip(metric.growth, 1, _MOST_GROWTH)
            more = (jnp.max(metric.growth) > _GROWS / _WIDER) | first
            left = jnp.where(more, state.pilots - 1, 0)
            return reference.refit(metric.scaled(wider)), left

        arrays, pilots = cond_if_any_run(ends, learned, (state.reference, state.pilots))
        equal = jnp.full_like(state.log_weights, -math.log(state.log_weights.shape[1]))
        # The number of temperatures is as 1 / sqrt(1 - size).
        num, wanted = state.num_temperatures, jnp.maximum(2 * state.num_adapt, 1)
        share = num.astype(equal.dtype) / wanted.astype(equal.dtype)
        size = jnp.clip(1 - (1 - _PILOT_ESS) * share**2, _PILOT_ESS, _MOST_ESS)
        size = jnp.where(pilots == 0, self.ess_fraction or size, _PILOT_ESS)
        none = lambda leaf: jnp.where(ends, jnp.zeros_like(leaf), leaf)
        return dataclasses.replace(
            state,
            reference=arrays,
            pilots=pilots,
            ess_fraction=jnp.where(ends, size, state.ess_fraction),
            num_temperatures=none(state.num_temperatures),
            begins=ends,
            log_weights=jnp.where(ends, equal, state.log_weights),
            inverse_temperatures=none(state.inverse_temperatures),
            log_normalizers=none(state.log_normalizers),
        )

    def _one_run(self, path, size, key, walkers, log_weights, beta, log_z, parameters):
        """Weigh, choose and move the particles of one run."""
        # Returns what the state holds of it, and what the info is made of.
        choose_key, key = jr.split(key)
        new_beta = next_temperature(walkers.log_ratio, log_weights, beta, size)
        new_beta = jax.lax.pmean(new_beta, _RUN)
        gains = jnp.where(new_beta > beta, (new_beta - beta) * walkers.log_ratio, 0)
        log_weights = log_weights + gains
        log_z = log_z + jax.nn.logsumexp(log_weights)
        log_weights = jax.nn.log_softmax(log_weights)
        share = ess_fraction(log_weights)
        arrives = (new_beta == 1) & (beta < 1)
        choose = (share < 0.5) | arrives
        chosen = systematic_resampling(choose_key, jax.nn.softmax(log_weights))
        index = jnp.where(choose, chosen, jnp.arange(len(chosen)))
        walkers = jax.tree.map(lambda leaf: leaf[index], walkers)
        equal = jnp.full_like(log_weights, -jnp.log(len(log_weights)))
        log_weights = jnp.where(choose, equal, log_weights)

        moved = self._moved(key, path, walkers, new_beta, parameters, beta == 1)
        walkers, parameters, num_moves, (rates, spent, undefined) = moved
        run = walkers, log_weights, new_beta, log_z, parameters
        return run, (share, rates / num_moves.astype(rates.dtype), spent, undefined)

    def _moved(self, key, path, walkers, beta, parameters, at_target):
        """Move the particles until they have forgotten where they were, or once."""
        begun, is_fixed = _standardized(walkers.point), self.num_moves is not None
        inner = self.inner if is_fixed else self.inner.varied()
        most = self.num_moves or jnp.where(at_target, 1, _MOST_MOVES)
        one = jnp.ones((), begun.dtype)

        def unfinished(carry):
            *_, count, before, now, _ = carry
            falls = (count < 2) | (before - now > _SLOW)
            return (count < most) & (((now > _FORGOTTEN) & falls) | is_fixed)

        def move(carry):
            walkers, parameters, count, _, before, totals = carry
            walkers, chances, spent, defined = inner.move_all(
                jr.fold_in(key, count), path, walkers, beta, parameters
            )
            rate = jnp.mean(chances)
            new = rate, jnp.mean(spent.astype(begun.dtype)), jnp.sum(~defined)
            each = jnp.mean(begun * _standardized(walkers.point), axis=0)
            now = jnp.max(jax.lax.pmean(each, _RUN))
            totals = jax.tree.map(jnp.add, totals, new)
            parameters = self.inner.adapt(parameters, rate)
            return walkers, parameters, count + 1, before, now, totals

        totals = 0 * one, 0 * one, jnp.zeros((), int)
        start = walkers, parameters, jnp.zeros((), int), one, one, totals
        end = jax.lax.while_loop(unfinished, move, start)
        walkers, parameters, count, *_, totals = end
        return walkers, parameters, count, totals


def _by_run(tree: PyTree, num_runs: int) -> PyTree:
    """Return arrays of all particles as those of (run, member of the run)."""
    return jax.tree.map(lambda x: x.reshape(num_runs, -1, *x.shape[1:]), tree)


def _with_metrics(
    parameters: ChainParameters, points: Array, log_weights: Float[Array, "run member"]
) -> ChainParameters:
    """Return parameters whose metrics are along the shape of the next run's particles.

    A run's own would be correlated with where its particles are, and its moves would
    no longer leave the density invariant.
    """

    def updated(metric, points, log_weights):
        num = len(log_weights)
        sums = metric.sums(points, jnp.exp(log_weights) * num)
        return metric.updated(sums, ess_fraction(log_weights) * num)

    others = (jnp.roll(leaf, 1, axis=0) for leaf in (points, log_weights))
    metric = jax.vmap(updated)(parameters.metric, *others)
    return dataclasses.replace(parameters, metric=metric)


def _standardized(points: Particles) -> Float[Array, "particle size"]:
    """Return flat points with mean 0 and mean square 1."""
    flat = points.reshape(len(points), -1)
    gaps = flat - jnp.mean(flat, axis=0, keepdims=True)
    return gaps / jnp.sqrt(jnp.mean(gaps**2, axis=0, keepdims=True) + 1e-30)
