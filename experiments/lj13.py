"""Learn LJ-13 from samples, as an equivariant EBM on invariant features."""

import dataclasses
import functools
import types
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein.metrics import pair_distances
from equistein.runs import FLOOR, Metric, Outcome, seed_outcome
from experiments._clouds import cloud_models, CloudConfig, GAP, TINY
from experiments._engine import Entry, Experiment, Trial
from experiments._figures import Configurations, Histograms
from experiments._systems import LJ13_SYSTEM, reference
from experiments._types import Particles

_HELD_OUT = 1_000  # samples to compare with, at least


@dataclasses.dataclass(frozen=True, kw_only=True)
class LJ13Config(CloudConfig):
    """Settings of `lj13`.

    Attributes:
        num_data: Training configurations.
    """

    num_seeds: int = 3
    num_paper_seeds: int | None = 1
    num_samples: int = 1_000
    num_epochs: int = 10
    num_steps: int = 30
    num_batches: int = 6_400
    num_data: int = 1_000


@functools.cache
def samples_to_learn(num: int) -> tuple[Particles, Float[Array, "other *shape"]]:
    """Return configurations to learn from, and others to compare with.

    Published samples if they are enough, or the library's own reference samples.
    """
    clouds = LJ13_SYSTEM.published_samples()
    if clouds is None or len(clouds) < num + _HELD_OUT:
        clouds = reference(LJ13_SYSTEM, num + _HELD_OUT, 2)
    return clouds[:num], clouds[num:]


def entries(config: LJ13Config) -> list[Entry]:
    """Return the models and the floor."""
    target = LJ13_SYSTEM.target

    def data() -> Particles:
        return samples_to_learn(config.num_data)[0]

    def describe(points: Particles, **kept: Any) -> Outcome:
        return described(samples_to_learn(config.num_data)[1], points, **kept)

    def floor(trial: Trial) -> Outcome:
        return describe(data()[: config.num_samples])

    notes = (
        "The network sees coordinates.",
        "The network sees sorted distances and each particle's mean distance; the "
        "sampler's kernel is pulled back along the distances.",
    )
    return [
        *cloud_models(config, target.group, data, describe, notes, target.log_density),
        Entry(FLOOR, floor, label="data", num_seeds=1),
    ]


def described(
    held_out: Float[Array, "datum *shape"],
    points: Particles,
    more: Mapping[str, Any] = types.MappingProxyType({}),
    **kept: Any,
) -> Outcome:
    """Measure configurations against those held out; keep further numbers."""
    energy = LJ13_SYSTEM.energy
    energies, distances = energy(points), pair_distances(points)
    numbers = LJ13_SYSTEM.quality(held_out, points) | {
        "median_energy": jnp.median(energies),
        "median_energy_of_data": jnp.median(energy(held_out)),
        "closest_pair": jnp.median(jnp.min(distances, axis=1)),
        **more,
    }
    arrays = {"energies": energies, "distances": distances.ravel()}
    return seed_outcome(numbers, points, arrays=arrays, **kept)


METRICS = {
    "closest_pair": Metric("distance of the closest two particles (median)"),
    "distance_tv": Metric("distance of pair distances (total variation)", "lower"),
    "energy_w2": Metric("distance of energies (Wasserstein-2)", "lower"),
    "energy_w2_corrected": Metric(
        "distance of energies (Wasserstein-2), corrected by chains", "lower"
    ),
    "evaluations": Metric("evaluations of the score"),
    "geometric_w2": Metric("distance of clouds, superimposed (Wasserstein-2)", "lower"),
    "mean_energy": Metric("mean energy"),
    "median_energy": Metric("median energy in the true potential"),
    "weights_worth": Metric(
        "samples that importance weights to the true energy are worth"
    ),
}

LJ13 = Experiment(
    name="lj13",
    figure="beyond the paper",
    metrics=METRICS,
    headlines=("energy_w2", "distance_tv", "energy_w2_corrected"),
    summary="learn LJ-13 from samples and draw new clusters",
    presets={
        "smoke": LJ13Config(
            num_seeds=1, num_data=40, num_batches=4, **{**TINY, "num_samples": 16}
        ),
        "quick": LJ13Config(),
        "paper": LJ13Config(
            num_seeds=5,
            num_paper_seeds=None,
            num_data=5_000,
            num_epochs=100,
            width=256,
            num_batches=19_200,
        ),
    },
    entries=entries,
    figures=(
        Configurations("configurations", 8, 2.5, caption="Configurations as drawn."),
        Histograms(
            "energies",
            "energies",
            "energy in the true potential",
            limits=(-70.0, 60.0),
            caption="Energies in the true potential, which the models never see. The "
            "pair energy rises by thousands within a tenth of a length, so that small "
            "errors of the model show as high energies here.",
        ),
        Histograms(
            "distances",
            "distances",
            "distance of two particles",
            limits=LJ13_SYSTEM.limits,
        ),
        GAP,
    ),
)
