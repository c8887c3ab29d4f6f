"""The settings of the mixture whose modes are far apart."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from equistein.kernels import RBF
from equistein.metrics import proportions
from equistein.samplers import (
    AbstractSampler,
    AnnealedSMC,
    from_blackjax,
    MALA,
    Normal,
    ParallelTempering,
    run,
    Samples,
    SVGD,
    vector_adam,
)
from equistein.targets import HardMixture
from experiments._engine import AbstractConfig, annealed_to_target
from experiments._types import Key, Keys, Particles, Scalar


@dataclasses.dataclass(frozen=True, kw_only=True)
class HardMixtureConfig(AbstractConfig):
    r"""Settings of `hard-mixture`.

    The reference of tempering and sequential Monte Carlo is a normal density around
    the origin with the scale `reference_reach * radius / sqrt(dim)`. At 1 its points
    are as far from the origin as the modes are, and more of the path's mass is in the
    narrowest mode, where least of it is, than for other scales: 1.2 % in 20 dimensions,
    and .3 % at a scale of 15.

    Attributes:
        dim: The dimension, from 2 to 50.
        weights: The weights of the modes.
        width_ratio: The largest width of a mode over the smallest, at least 1.
        radius: The distance of the modes from the origin.
        reference_reach: The typical distance of the reference's points from the origin,
            over that of the modes.
        wide_reach: That of `wide`.
        wide_seeds: The number of seeds of `wide`, at most.
        num_temperatures: Those of tempering.
        num_ladders: Its ladders, each with one chain of the target.
        num_steps: Its steps.
        adapt_fraction: The fraction of them that adapt, and are not averaged over.
        num_records: How often its chains are looked at, to average over them.
        num_smc_particles: The particles of sequential Monte Carlo, all runs together.
        num_smc_runs: Its independent runs.
        num_moves: The moves of a particle at each temperature.
        ess_fraction: The conditional effective sample size aimed at, a fraction.
        smc_divisors: What its particles are divided by in smaller runs, for the curve.
        num_chains: The chains of MALA.
        chain_steps: The steps of each.
        nuts_chains: The chains of NUTS.
        nuts_warm_up: The steps of its warm-up; 0 for none, with a step size of 1.
        nuts_steps: The transitions of each.
        num_svgd_particles: The particles of SVGD.
        svgd_steps: Its steps.
        svgd_step_size: The length of its normalized steps.
        num_exact: The exact samples of the floor.
        width_ratios: Where it is shown how tempering begins to fail.
        ratio_steps: The steps of tempering there.
        ratio_particles: The particles of sequential Monte Carlo there.
        ratio_moves: The moves of each at each temperature.
    """

    num_seeds: int = 2
    dim: int = 20
    weights: tuple[float, ...] = (0.4, 0.3, 0.2, 0.1)
    width_ratio: float = 1.4
    radius: float = 15.0
    reference_reach: float = 1.0
    wide_reach: float = 4.5
    wide_seeds: int = 3
    num_temperatures: int = 10
    num_ladders: int = 64
    num_steps: int = 20_000
    adapt_fraction: float = 0.1
    num_records: int = 400
    num_smc_particles: int = 65_536
    num_smc_runs: int = 16
    num_moves: int = 15
    ess_fraction: float = 0.9
    smc_divisors: tuple[int, ...] = (16, 4)
    num_chains: int = 512
    chain_steps: int = 2_000
    nuts_chains: int = 64
    nuts_warm_up: int = 500
    nuts_steps: int = 100
    num_svgd_particles: int = 256
    svgd_steps: int = 2_000
    svgd_step_size: float = 0.1
    num_exact: int = 2_000
    width_ratios: tuple[float, ...] = (1.0, 1.1, 1.2, 1.3, 1.4)
    ratio_steps: int = 2_000
    ratio_particles: int = 4_096
    ratio_moves: int = 15

    or_zero: ClassVar[Sequence[str]] = ("nuts_warm_up",)
    below_one: ClassVar[Sequence[str]] = ("adapt_fraction", "ess_fraction")

    def __post_init__(self):
        """Raise `ValueError` for settings that do not go together."""
        super().__post_init__()
        if self.width_ratio < 1:  # as it says itself, but without making one
            raise ValueError(
                f"HardMixture needs `width_ratio` >= 1, but got {self.width_ratio!r}."
            )
        if min(self.width_ratios) < 1:
            raise ValueError(
                f"`width_ratios` must be at least 1, but got {self.width_ratios!r}."
            )
        for num in self.smc_sizes:
            if num < 2 * self.num_smc_runs or num % self.num_smc_runs:
                raise ValueError(
                    "`num_smc_particles`, divided by each of `smc_divisors`, and "
                    "`ratio_particles` must be twice `num_smc_runs` or more, and a "
                    f"multiple of it, but got {num} for {self.num_smc_runs} runs."
                )
        steps = min(self.num_steps, self.ratio_steps)
        if self.num_records > steps or self.adapt_fraction * steps < 4:
            raise ValueError(
                "`num_steps` and `ratio_steps` must be at least `num_records` and "
                f"4 / `adapt_fraction`, but got {steps}."
            )

    @property
    def smc_sizes(self) -> tuple[int, ...]:
        """The numbers of particles of all runs of sequential Monte Carlo."""
        smaller = [self.num_smc_particles / divisor for divisor in self.smc_divisors]
        if any(num % 1 for num in smaller):
            raise ValueError(
                "`num_smc_particles` must be a multiple of each of `smc_divisors`, but "
                f"got {self.num_smc_particles} and {self.smc_divisors}."
            )
        return (*map(int, smaller), self.num_smc_particles, self.ratio_particles)

    @property
    def num_starts(self) -> int:
        """The number of particles that are drawn for any of the samplers."""
        return max(
            self.num_ladders, self.num_chains, self.nuts_chains, self.num_svgd_particles
        )

    def target(self, width_ratio: float | None = None) -> HardMixture:
        """Return the mixture, of another width ratio if it is given."""
        return HardMixture(
            self.dim, weights=self.weights, radius=self.radius,
            width_ratio=width_ratio or self.width_ratio,
        )  # fmt: skip

    def reference(self, reach: float) -> Normal:
        """Return the reference whose points are this far out, the modes at 1."""
        target = self.target()
        return Normal(0 * target.means[0], reach * self.radius / self.dim**0.5)


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
        ess_fraction=config.ess_fraction,
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
