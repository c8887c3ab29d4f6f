"""Annealed sequential Monte Carlo: particles that are weighed, chosen and moved."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from equistein._check_arguments import (
    accept_integer_key,
    check_arguments,
    check_finite_arguments,
)
from equistein._numbers import check_integers
from equistein._types import Key, LogDensity, Particles, Scalar
from equistein.samplers._base import cond_if_any_run
from equistein.samplers._geometric_path import (
    AbstractReference,
    ess_fraction,
    GeometricPath,
    PathWalker,
    walkers_without_values,
)
from equistein.samplers._markov_chains import (
    AbstractMarkovChains,
    AbstractPathSampler,
    ChainParameters,
)
from equistein.samplers._steps import check_fraction, rms

_BISECTIONS = 40


class SMCState(eqx.Module):
    """What the next step needs; walkers have shape (run, member of the run)."""

    particles: Particles
    walkers: PathWalker
    log_weights: Float[Array, "run member"]
    inverse_temperatures: Float[Array, " run"]
    log_normalizers: Float[Array, " run"]
    parameters: ChainParameters
    reference: PyTree
    evaluations: Int[Array, ""]
    step: Int[Array, ""]


class SMCInfo(eqx.Module):
    """What a step was like.

    The inverse temperature is the least of all runs; `ess_fraction` is that of the
    worst run, before resampling; `evaluations` counts those of the score for each
    particle, and `undefined` the moves of this step to where the log density is NaN.
    """

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
    moves each particle `num_moves` times. If steps run out before the target is
    reached, the particles are those of a hotter density: `Samples.summary` holds the
    inverse temperature, the weights and log Z.

    The particles are `num_runs` independent populations, whose estimates of Z give its
    error. The start only says how many there are and, without `reference`, where.

    Args:
        inner: What moves the particles: `MALA`, or one of `from_blackjax`.
        reference: The density at $\beta = 0$, on the chains' subspace. By default a
            normal one fitted to the start.
        num_runs: The number of populations, which divides that of the particles.
        num_moves: The number of moves a step.
        ess_fraction: The conditional effective sample size aimed at.

    References:
        Del Moral, Doucet and Jasra (2006), Sequential Monte Carlo samplers; Zhou,
        Johansen and Aston (2016) for the conditional effective sample size.
    """

    inner: AbstractMarkovChains
    _: dataclasses.KW_ONLY
    reference: AbstractReference | None = None
    num_runs: int = 4
    num_moves: int = 5
    ess_fraction: float = 0.95
    reaches_reference: bool = eqx.field(default=True, init=False)

    def __check_init__(self):
        check_integers("AnnealedSMC", num_runs=self.num_runs, num_moves=self.num_moves)
        check_fraction("AnnealedSMC", ess_fraction=self.ess_fraction)

    def init(self, particles: Particles, log_density: LogDensity) -> SMCState:
        """Build the state; the first step replaces the particles by the reference's."""
        if len(particles) % self.num_runs or len(particles) < 2 * self.num_runs:
            raise ValueError(
                f"AnnealedSMC needs at least two `particles` for each of its "
                f"{self.num_runs} runs, and equally many for each, but got "
                f"{len(particles)}."
            )
        del log_density  # the particles of the reference are drawn in the first step
        x = jax.vmap(self.inner.project)(particles)
        by_run = x.reshape(self.num_runs, -1, *x.shape[1:])
        zeros = jnp.zeros(by_run.shape[:2], x.dtype)
        zero, of_runs = jnp.zeros((), int), jnp.zeros(self.num_runs, x.dtype)
        return SMCState(
            x, walkers_without_values(by_run),
            zeros - jnp.log(zeros.shape[1]).astype(x.dtype), of_runs, of_runs,
            self._parameters(x, self.num_runs),
            eqx.filter(self._base(x), eqx.is_array), zero, zero,
        )  # fmt: skip

    def log_densities(self, state: SMCState) -> Float[Array, " particle"]:
        # Unknown before the first step.
        return jnp.where(state.step > 0, state.walkers.value, jnp.nan).ravel()

    @accept_integer_key
    def step(
        self, key: Key, state: SMCState, log_density: LogDensity
    ) -> tuple[SMCState, SMCInfo]:
        path = self._path(log_density, state.particles, state.reference)
        draw_key, tune_key, *keys = jr.split(key, 2 + self.num_runs)
        walkers = self._walkers(draw_key, path, state)
        # At the reference; the moves adapt from then on.
        parameters, tuning = self._tune_if(
            state.step == 0, tune_key, path, walkers.point, state.inverse_temperatures,
            state.parameters,
        )  # fmt: skip
        runs, (shares, rates, spent, undefined) = jax.vmap(
            lambda *run: self._one_run(path, *run)
        )(
            jnp.stack(keys), walkers, state.log_weights, state.inverse_temperatures,
            state.log_normalizers, parameters,
        )  # fmt: skip
        walkers, _, betas, *_ = runs
        x = walkers.point.reshape(state.particles.shape)
        spent = jnp.round(jnp.mean(spent.astype(float))).astype(int)
        evaluations = state.evaluations + jnp.max(tuning) + spent
        evaluations += (state.step == 0).astype(int)
        new = SMCState(x, *runs, state.reference, evaluations, state.step + 1)
        info = SMCInfo(
            _mean_of_finite(walkers.value), jnp.mean(rates), rms(x - state.particles),
            jnp.min(betas), jnp.min(shares), evaluations, jnp.sum(undefined),
        )  # fmt: skip
        return new, info

    @np.errstate(invalid="ignore")  # where all weights are zero
    def summary(self, state: SMCState) -> dict[str, Any]:
        """Return the temperatures reached, the weights, and log Z with its error.

        The mean of the runs' estimates of Z up to the temperature reached, and the
        standard error of that mean, infinite for one run; both in logarithms.
        """
        each, runs = np.asarray(state.log_normalizers), self.num_runs
        total, weights = np.logaddexp.reduce(each), np.asarray(state.log_weights)
        shares = runs * np.exp(each - total)
        error = np.std(shares, ddof=1) / runs**0.5 if runs > 1 else np.inf
        weights = np.exp(weights - np.logaddexp.reduce(weights, axis=1, keepdims=True))
        return {
            "inverse_temperatures": state.inverse_temperatures,
            "weights": weights.ravel() / runs,
            "log_z": total - np.log(runs),
            "log_z_error": error,
            "log_z_of_runs": each,
        }

    def _walkers(self, key: Key, path: GeometricPath, state: SMCState) -> PathWalker:
        """Return the walkers: in the first step, samples of the reference."""

        def drawn():
            shape = state.walkers.value.shape
            walkers = path.start(key, shape[0] * shape[1], state.particles.dtype)
            by_run = lambda leaf: leaf.reshape(*shape, *leaf.shape[1:])
            return jax.tree.map(by_run, walkers)

        return cond_if_any_run(state.step == 0, drawn, state.walkers)

    def _one_run(self, path, key, walkers, log_weights, beta, log_z, parameters):
        """Weigh, choose and move the particles of one run.

        Returns what the state holds of it, and what the info is made of.
        """
        choose_key, key = jr.split(key)
        new_beta = next_temperature(
            walkers.log_ratio, log_weights, beta, self.ess_fraction
        )
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

        def move(carry, key):
            walkers, parameters = carry
            walkers, chances, spent, defined = self.inner.move_all(
                key, path, walkers, new_beta, parameters
            )
            rate = jnp.mean(chances)
            record = rate, spent, jnp.sum(~defined)
            return (walkers, self.inner.adapt(parameters, rate)), record

        (walkers, parameters), (rates, spent, undefined) = jax.lax.scan(
            move, (walkers, parameters), jr.split(key, self.num_moves)
        )
        spent = jnp.mean(jnp.sum(spent, axis=0).astype(float))
        run = walkers, log_weights, new_beta, log_z, parameters
        return run, (share, jnp.mean(rates), spent, jnp.sum(undefined))


def _mean_of_finite(values: Float[Array, "run member"]) -> Scalar:
    """Return the mean, without particles that have no weight."""
    finite = jnp.isfinite(values)
    count = jnp.maximum(jnp.sum(finite), 1).astype(values.dtype)
    return jnp.sum(jnp.where(finite, values, 0)) / count


def next_temperature(
    log_ratios: Float[Array, " particle"],
    log_weights: Float[Array, " particle"],
    beta: Scalar,
    ess_fraction: float,
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
