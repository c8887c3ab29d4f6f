"""The normalizer of a density, by annealed importance sampling."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float

from equistein._check_arguments import check_finite_arguments
from equistein._limits import check_memory
from equistein._numbers import check_integers
from equistein._types import Key, LogDensity, Particles, Scalar
from equistein.samplers import (
    AbstractReference,
    ChainParameters,
    GeometricPath,
    MALA,
    PathWalker,
)

_PILOTS = 64
_BYTES = 64  # of a temperature or a particle, at least
_ACCEPTANCE = 0.6
_FEWEST = 8  # effective samples, below which an error cannot be estimated


@check_finite_arguments
class LogNormalizer(eqx.Module):
    r"""An estimate of $\log Z$.

    A mode that no chain found is missing from both estimates and from `error`, unless
    samples of the density were given: with samples in all modes, `lower` and `upper`
    enclose $\log Z$.

    Attributes:
        value: The mean of `lower` and `upper`.
        error: A bound on its error, for the modes that chains or samples are in: half
            the difference of the two, and three standard errors. Infinite with fewer
            than 8 effective samples: take more steps or particles.
        lower: The estimate from the reference to the density: on average a lower bound.
        upper: The estimate back to the reference; on average an upper bound if it began
            at samples of the density.
        effective_sample_size: That of the weights, the smaller of the two directions.
    """

    value: Scalar
    error: Scalar
    lower: Scalar
    upper: Scalar
    effective_sample_size: Scalar


@check_finite_arguments
def annealed_importance_sampling(
    key: Key,
    log_density: LogDensity,
    reference: AbstractReference,
    *,
    samples: Particles | None = None,
    num_particles: int = 512,
    num_steps: int = 2_000,
) -> LogNormalizer:
    r"""Estimate $\log Z = \log \int e^{\log p(x)} dx$ from below and from above.

    Chains go from the reference to the density along $b(x)^{1 - \beta} p(x)^\beta$ by
    Metropolis-adjusted Langevin moves, their sizes tuned in a pilot run; other chains
    go back, from samples of the density:

    $$Z \approx \frac1n \sum_i W_i, \qquad
      Z \approx b(p > 0) \Bigl/ \frac1m \sum_j \frac1{W'_j}$$

    with the products W of the ratios of neighboring densities along a chain, and the
    probability under the reference of where p is positive, which chains cannot leave.

    Zero density, as behind a hard wall, is minus infinity or NaN. The reference lives
    on the subspace of the points. At most `num_particles` of the `samples` are used.
    Without them the way back begins at the chains' ends, resampled by their weights,
    and misses the modes that they miss: take a reference wider than p.

    References:
        Neal (2001), Annealed importance sampling; Grosse, Ancha and Roy (2016),
        Measuring the reliability of MCMC inference, for the way back.
    """
    check_integers("annealed_importance_sampling", 2, num_particles=num_particles)
    check_integers("annealed_importance_sampling", num_steps=num_steps)
    check_memory(
        f"Annealed importance sampling in {num_steps} steps",
        _BYTES * (num_steps + num_particles),
        "take smaller `num_particles` or `num_steps`",
    )
    path = GeometricPath(log_density, reference)
    found, is_inside = _estimate(key, path, samples, num_particles, num_steps)
    if not is_inside:
        raise ValueError(
            "`samples` where the density is zero are not samples of it: leave them out."
        )
    return found


@eqx.filter_jit
def _estimate(
    key: Key, path: GeometricPath, samples: Particles | None, num_particles: int,
    num_steps: int,
) -> tuple[LogNormalizer, Bool[Array, ""]]:  # fmt: skip
    """Return the estimate, and whether all samples have a density above zero."""
    keys = jr.split(key, 6)
    starts = path.start(keys[0], num_particles)
    # Small steps while the density is nearly flat, where its energies are largest.
    betas = ((jnp.arange(num_steps + 1) / num_steps) ** 4).astype(starts.value.dtype)
    pilots = path.start(keys[1], _PILOTS)
    step_sizes = _tune(keys[2], path, pilots, betas[1:])
    ends, log_weights = _walk(keys[3], path, starts, betas, step_sizes)
    if samples is None:
        weights = jax.nn.softmax(log_weights)
        weights = jnp.nan_to_num(weights, nan=1 / num_particles)
        chosen = jr.choice(keys[4], num_particles, (num_particles,), p=weights)
        tops = jax.tree.map(lambda leaf: leaf[chosen], ends)
    else:
        tops = _walkers_at(keys[4], path, samples, num_particles)
    _, log_inverses = _walk(keys[5], path, tops, betas[::-1], step_sizes[::-1])
    lower, lower_error, effective = _log_mean(log_weights)
    inverse, inverse_error, effective_back = _log_mean(log_inverses)
    inside = jnp.mean(jnp.isfinite(starts.value).astype(betas.dtype))
    is_inside = (samples is None) | jnp.all(jnp.isfinite(tops.value))
    upper = jnp.log(inside) - inverse
    upper_error = jnp.sqrt(inverse_error**2 + (1 / inside - 1) / num_particles)
    effective = jnp.minimum(effective, effective_back)
    error = jnp.abs(upper - lower) / 2 + 3 * jnp.maximum(lower_error, upper_error)
    found = LogNormalizer(
        value=(lower + upper) / 2,
        error=jnp.where(effective >= _FEWEST, error, jnp.inf),
        lower=lower,
        upper=upper,
        effective_sample_size=effective,
    )
    return found, is_inside


def _walk(
    key: Key, path: GeometricPath, walkers: PathWalker,
    betas: Float[Array, " temperature"], step_sizes: Float[Array, " step"],
) -> tuple[PathWalker, Float[Array, " particle"]]:  # fmt: skip
    """Move walkers from the first to the last temperature; return log weights too."""

    def step(carry, inputs):
        walkers, log_weights = carry
        key, before, after, step_size = inputs
        log_weights = log_weights + (after - before) * walkers.log_ratio
        walkers, _ = _move(key, path, walkers, after, jnp.log(step_size))
        return (walkers, log_weights), None

    inputs = (jr.split(key, len(step_sizes)), betas[:-1], betas[1:], step_sizes)
    carry = (walkers, jnp.zeros_like(walkers.value))
    return jax.lax.scan(step, carry, inputs)[0]


def _tune(
    key: Key, path: GeometricPath, walkers: PathWalker, betas: Float[Array, " step"]
) -> Float[Array, " step"]:
    """Return for each inverse temperature the step size that accepts 0.6."""
    inside = jnp.isfinite(walkers.value)
    count = jnp.maximum(jnp.sum(inside), 1)

    def step(carry, inputs):
        walkers, log_size = carry
        key, beta = inputs
        walkers, chances = _move(key, path, walkers, beta, log_size)
        chance = jnp.sum(jnp.where(inside, chances, 0)) / count.astype(chances.dtype)
        log_size = log_size + 0.2 * (chance - _ACCEPTANCE)
        return (walkers, log_size), jnp.exp(log_size)

    spread = jnp.mean(jnp.var(walkers.point, axis=0))
    carry = (walkers, jnp.log(0.5 * spread))
    return jax.lax.scan(step, carry, (jr.split(key, len(betas)), betas))[1]


def _move(
    key: Key, path: GeometricPath, walkers: PathWalker, beta: Scalar,
    log_step_size: Scalar,
) -> tuple[PathWalker, Float[Array, " particle"]]:  # fmt: skip
    assert isinstance(path.reference, AbstractReference)
    chains = MALA(1.0, project=path.reference.project)
    parameters = ChainParameters(log_step_size)
    walkers, chances, *_ = chains.move_all(key, path, walkers, beta, parameters)
    return walkers, chances


def _walkers_at(
    key: Key, path: GeometricPath, samples: Particles, most: int
) -> PathWalker:
    reference = path.reference
    assert isinstance(reference, AbstractReference)
    shape = jax.eval_shape(lambda k: reference.sample(k, 1), key).shape[1:]
    if len(samples) < 2 or samples.shape[1:] != shape:
        raise ValueError(
            f"`samples` must be at least two points of shape {shape}, stacked on axis "
            f"0, but got shape {samples.shape}."
        )
    if len(samples) > most:
        samples = samples[jr.choice(key, len(samples), (most,), replace=False)]
    return jax.vmap(lambda x: path.evaluate(reference.project(x)))(samples)


def _log_mean(log_weights: Float[Array, " n"]) -> tuple[Scalar, Scalar, Scalar]:
    """Return the log of the mean weight, its standard error, and the effective number.

    That is how many equal weights are as good; 0 where all weights are zero.
    """
    num, weights = len(log_weights), jax.nn.softmax(log_weights)
    error = jnp.std(num * weights) / jnp.sqrt(float(num))
    effective = jnp.nan_to_num(1 / jnp.sum(weights**2), nan=0.0)
    log_mean = logsumexp(log_weights) - jnp.log(float(num))
    return log_mean, error.astype(weights.dtype), effective
