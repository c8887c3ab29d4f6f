"""Tempering and sequential Monte Carlo of the hard mixture, and what is measured."""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from equistein.metrics import proportions
from equistein.runs import Outcome, seed_outcome
from equistein.samplers import MALA, Normal, ParallelTempering, run, Samples
from equistein.targets import HardMixture
from experiments._engine import Key, Particles, Scalar
from experiments._sampling import SMCConfig

REACH = 1.0
ADAPTING = 0.1  # of the steps of tempering, which are not averaged over


_TOLERANCE = 0.03  # of a weight


@dataclasses.dataclass(frozen=True, kw_only=True)
class HardMixtureConfig(SMCConfig):
    """Settings of `hard-mixture`.

    Attributes:
        dim: The dimension, from 2 to 50.
        width_ratio: The largest width of a mode over the smallest, at least 1.
        num_temperatures: Those of tempering.
        num_ladders: Its ladders, each with one chain of the target; the chains of NUTS.
        num_steps: Its steps.
        num_records: How often its chains are looked at, to average over them.
        num_chains: The chains of MALA.
        chain_steps: The steps of each, and of SVGD.
        nuts_steps: The transitions of each chain of NUTS.
        num_svgd_particles: The particles of SVGD.
        num_exact: The exact samples of the floor.
    """

    num_seeds: int = 2
    dim: int = 20
    width_ratio: float = 1.4
    num_temperatures: int = 10
    num_ladders: int = 64
    num_steps: int = 20_000
    num_records: int = 400
    num_smc_particles: int = 65_536
    num_moves: int = 15
    num_chains: int = 512
    chain_steps: int = 2_000
    nuts_steps: int = 100
    num_svgd_particles: int = 256
    num_exact: int = 2_000

    def __post_init__(self):
        """Raise `ValueError` for settings that do not go together."""
        super().__post_init__()
        if self.num_steps < max(self.num_records, 4 / ADAPTING):
            raise ValueError(
                "`num_steps` must be at least `num_records` and 40, but got "
                f"{self.num_steps!r}."
            )

    @property
    def target(self) -> HardMixture:
        """The mixture."""
        return HardMixture(self.dim, width_ratio=self.width_ratio)

    def reference(self, reach: float = REACH) -> Normal:
        """Return a normal density whose points are this far out, the modes at 1.

        At 1 more of the path's mass is in the narrowest mode, where least of it is,
        than for other scales: 1.2 % in 20 dimensions, and .3 % at a scale of 15.
        """
        target = self.target
        return Normal(0 * target.means[0], reach * target.radius / self.dim**0.5)


def tempering(
    config: HardMixtureConfig, reach: float
) -> Callable[[Key, Particles], Outcome]:
    """Return parallel tempering, from a reference of this reach."""
    target, num_steps = config.target, config.num_steps
    num_adapt = round(ADAPTING * num_steps)
    sampler = ParallelTempering(
        MALA(0.5),
        num_temperatures=config.num_temperatures,
        reference=config.reference(reach),
        num_adapt=num_adapt,
    )

    def sample(key: Key, start: Particles) -> Outcome:
        samples = run(
            key, sampler, target.log_density, start[: config.num_ladders],
            num_steps=num_steps, record_every=num_steps // config.num_records,
            keep=config.num_ladders, progress=True,
        )  # fmt: skip
        trips = float(np.sum(samples.summary["round_trips"]))
        more = _log_z(target, samples.summary) | {"round_trips": trips}
        return averaged(target, samples, num_adapt, more)

    return sample


def annealed(config: HardMixtureConfig) -> Callable[[Key, Particles], Outcome]:
    """Return sequential Monte Carlo."""
    target, reference = config.target, config.reference()
    # About the best step for the reference; it adapts from there.
    chains = MALA(0.5 * float(reference.scale) ** 2)

    def sample(key: Key, start: Particles) -> Outcome:
        del start  # exact samples of the reference are one
        samples, spent = config.annealed(key, chains, reference, target.log_density)
        weights = np.asarray(weights_of_modes(target, samples.particles))
        points = samples.particles[:: -(-config.num_smc_particles // 1_000)]
        history = {"step": [spent], "weight_error": [_error(target, weights)]}
        more = _log_z(target, samples.summary)
        return outcome_of(target, points, weights, spent, history, more)

    return sample


def averaged(
    target: HardMixture,
    samples: Samples,
    after: int,
    more: dict[str, Any] | None = None,
) -> Outcome:
    """Return what chains found: averages over the records after a number of steps."""
    history = samples.history
    seen = history["step"] > after
    labels = np.asarray(_labels(target, jnp.asarray(history["particles"][seen])))
    modes = np.arange(len(target.weights))
    each = np.mean(labels[..., None] == modes, axis=1)
    running = np.cumsum(each, axis=0) / np.arange(1, len(each) + 1)[:, None]
    spent = float(labels.shape[1]) * history["evaluations"][seen]
    errors = {"step": spent, "weight_error": [_error(target, w) for w in running]}
    more = {"changes_of_mode": np.sum(labels[1:] != labels[:-1])} | (more or {})
    return outcome_of(target, samples.particles, running[-1], spent[-1], errors, more)


def outcome_of(
    target: HardMixture,
    points: Particles,
    weights: np.ndarray,
    evaluations: float,
    history: dict[str, Any] | None = None,
    more: dict[str, Any] | None = None,
) -> Outcome:
    error = _error(target, weights)
    numbers = {f"weight_{i + 1}": part for i, part in enumerate(weights)} | {
        "weight_error": error,
        "weights_within_tolerance": error <= _TOLERANCE,
        "evaluations": evaluations,
        "relative_width": _relative_width(target, points),
        **(more or {}),
    }
    return seed_outcome(numbers, points, history=history)


def _error(target: HardMixture, weights: Float[np.ndarray, " mode"]) -> float:
    """Return the largest error of the weight of a mode."""
    return float(np.max(np.abs(weights - np.asarray(target.weights))))


def _log_z(target: HardMixture, summary: dict[str, Any]) -> dict[str, float]:
    """Return the error of log Z, the one that is stated, and whether they agree."""
    error = float(summary["log_z"] - target.log_normalizer)
    stated = float(summary["log_z_error"])
    return {
        "log_z_error": error,
        "log_z_stated_error": stated,
        "log_z_within_two": abs(error) <= 2 * stated,
    }


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
def weights_of_modes(target: HardMixture, points: Particles) -> Float[Array, " mode"]:
    return proportions(target.modes(points), len(target.weights))
