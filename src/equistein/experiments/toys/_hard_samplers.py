"""The samplers that are compared on the mixture whose modes are far apart."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from equistein._types import Key, Keys, Particles, Scalar
from equistein.experiments.engine._annealed import annealed_to_target
from equistein.experiments.toys._hard_config import HardMixtureConfig
from equistein.kernels import RBF
from equistein.metrics import proportions
from equistein.samplers import (
    AbstractSampler,
    AnnealedSMC,
    from_blackjax,
    MALA,
    ParallelTempering,
    run,
    Samples,
    SVGD,
    vector_adam,
)
from equistein.targets import HardMixture


class Found(NamedTuple):
    """What a sampler found.

    Attributes:
        points: Some particles.
        weights: The weights of the modes.
        evaluations: Evaluations of the score, of all chains or particles together.
        numbers: Further metrics; log Z and its error, where it is measured.
        history: The largest error of a weight over `step`, the evaluations.
    """

    points: Particles
    weights: np.ndarray
    evaluations: float
    numbers: dict[str, Any]
    history: dict[str, Any]


Sampling = Callable[[Key, HardMixture, Particles], Found]
"""From a key, the mixture and a start, what a sampler found."""
Samplings = Callable[[Keys, HardMixture, Float[Array, "run particle dim"]], list[Found]]
"""From keys, the mixture and starts, what a sampler found in runs side by side."""


def tempering(config: HardMixtureConfig, reach: float, num_steps: int) -> Sampling:
    """Return parallel tempering, from a reference of this reach."""
    num_adapt = round(config.adapt_fraction * num_steps)
    sampler = ParallelTempering(
        MALA(0.5),
        num_temperatures=config.num_temperatures,
        reference=config.reference(reach),
        num_adapt=num_adapt,
    )

    def sample(key: Key, target: HardMixture, start: Particles) -> Found:
        samples = run(
            key, sampler, target.log_density, start[: config.num_ladders],
            num_steps=num_steps, record_every=num_steps // config.num_records,
            keep=config.num_ladders, progress=True,
        )  # fmt: skip
        summary = samples.summary
        found = averaged(target, samples, num_adapt)
        trips = float(np.sum(summary["round_trips"]))
        numbers = found.numbers | _log_z(target, summary)
        numbers |= {"round_trips": trips, "barrier": summary["barrier"]}
        return found._replace(numbers=numbers)

    return sample


def annealed(
    config: HardMixtureConfig, sizes: tuple[int, ...], num_moves: int
) -> Sampling:
    """Return sequential Monte Carlo with more and more particles."""
    reference = config.reference(config.reference_reach)
    sampler = AnnealedSMC(
        # About the best step for the reference; it adapts from there.
        MALA(0.5 * float(reference.scale) ** 2),
        reference=reference,
        num_runs=config.num_smc_runs,
        num_moves=num_moves,
        share=config.conditional_size,
    )

    def once(key: Key, target: HardMixture, num: int) -> Found:
        like = reference.sample(key, num)
        samples = annealed_to_target(key, sampler, target.log_density, like)
        weights = _weights(target, samples.particles)
        spent = num * float(samples.history["evaluations"][-1])
        points = samples.particles[:: -(-num // 1_000)]
        numbers = _log_z(target, samples.summary) | _spread(target, points)
        return Found(points, np.asarray(weights), spent, numbers, {})

    def sample(key: Key, target: HardMixture, start: Particles) -> Found:
        del start  # exact samples of the reference are one
        all_found = [once(key, target, num) for num in sizes]
        history = {
            "step": [found.evaluations for found in all_found],
            "weight_error": [largest_error(target, f.weights) for f in all_found],
        }
        return all_found[-1]._replace(history=history)

    return sample


def mala(config: HardMixtureConfig) -> Samplings:
    """Return plain chains."""
    half = config.chain_steps // 2
    sampler = MALA(0.5, num_adapt=half)
    return _chains(sampler, config.num_chains, config.chain_steps, half)


def nuts(config: HardMixtureConfig) -> Samplings:
    """Return the chains of BlackJAX's NUTS, with its own warm-up."""
    import blackjax

    sampler = from_blackjax(
        blackjax.nuts, num_warmup=config.nuts_warm_up, step_size=1.0
    )
    steps = config.nuts_steps
    return _chains(sampler, config.nuts_chains, steps, steps // 2)


def svgd(config: HardMixtureConfig) -> Samplings:
    """Return vanilla SVGD with the median rule."""
    sampler = SVGD(RBF(), vector_adam(config.svgd_step_size))
    steps = config.svgd_steps
    return _chains(sampler, config.num_svgd_particles, steps, steps - 1)


def averaged(target: HardMixture, samples: Samples, after: int) -> Found:
    """Return what chains found: averages over the records after a number of steps."""
    history = samples.history
    seen = history["step"] > after
    labels = np.asarray(_labels(target, jnp.asarray(history["particles"][seen])))
    modes = np.arange(len(target.weights))
    each = np.mean(labels[..., None] == modes, axis=1)
    running = np.cumsum(each, axis=0) / np.arange(1, len(each) + 1)[:, None]
    spent = float(labels.shape[1]) * history["evaluations"][seen]
    changes = np.sum(labels[1:] != labels[:-1])
    numbers = _spread(target, samples.particles) | {"changes_of_mode": changes}
    return Found(
        samples.particles, running[-1], spent[-1], numbers,
        {"step": spent, "weight_error": [largest_error(target, w) for w in running]},
    )  # fmt: skip


def largest_error(target: HardMixture, weights: Float[np.ndarray, " mode"]) -> float:
    """Return the largest error of the weight of a mode."""
    return float(np.max(np.abs(weights - np.asarray(target.weights))))


def exact(target: HardMixture, points: Particles) -> Found:
    """Return what exact samples are worth."""
    weights = np.asarray(_weights(target, points))
    return Found(points, weights, 0.0, _spread(target, points), {})


def _chains(
    sampler: AbstractSampler, num: int, num_steps: int, after: int
) -> Samplings:
    def sample(
        keys: Keys, target: HardMixture, starts: Float[Array, "run particle dim"]
    ) -> list[Found]:
        samples = run(
            keys, sampler, target.log_density, starts[:, :num], num_steps=num_steps,
            record_every=max(1, num_steps // 100), keep=num, progress=True,
        )  # fmt: skip
        return [averaged(target, samples[i], after) for i in range(len(keys))]

    return sample


def _log_z(target: HardMixture, summary: dict[str, Any]) -> dict[str, float]:
    """Return the error of log Z, the one that is stated, and their ratio."""
    error = float(summary["log_z"] - target.log_normalizer)
    stated = float(summary["log_z_error"])
    return {
        "log_z_error": error,
        "log_z_stated_error": stated,
        "log_z_in_stated_errors": abs(error) / stated,
        "log_z_within_two": abs(error) <= 2 * stated,
    }


def _spread(target: HardMixture, points: Particles) -> dict[str, float]:
    return {"relative_width": float(_relative_width(target, points))}


@eqx.filter_jit
def _relative_width(target: HardMixture, points: Particles) -> Scalar:
    """Return the width of the modes over the exact one."""
    modes = target.modes(points)
    gaps = (points - target.means[modes]) / target.widths[modes][:, None]
    return jnp.sqrt(jnp.mean(gaps**2))


@eqx.filter_jit
def _labels(
    target: HardMixture, places: Float[Array, "record particle dim"]
) -> Int[Array, "record particle"]:
    """Return the mode that each particle is in."""
    return jax.vmap(target.modes)(places)


@eqx.filter_jit
def _weights(target: HardMixture, points: Particles) -> Float[Array, " mode"]:
    return proportions(target.modes(points), len(target.weights))
