"""Learn LJ-13 from samples, as an equivariant EBM on invariant features."""

import dataclasses
import functools
import pathlib
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein._types import Particles
from equistein.data import published_clouds
from equistein.experiments._base import Experiment, Stage
from equistein.experiments.learned._clouds import learned_clouds
from equistein.experiments.systems._lj13_sampling import LJ13_SYSTEM as SYSTEM
from equistein.experiments.systems._system import measure, reference
from equistein.groups import AbstractGroup, Trivial
from equistein.metrics import pair_distances
from equistein.plotting import configurations, curves, histograms
from equistein.runs import FLOOR, Outcome


@dataclasses.dataclass(frozen=True, kw_only=True)
class LJ13Config:
    """Settings of `lj13`.

    Attributes:
        num_seeds: The number of seeds, counted up from the run's seed.
        num_data: Training configurations.
        num_samples: Samples drawn from each model, from fresh starts.
        num_epochs: Passes over the data.
        num_steps: Sampler steps a batch.
        num_particles: Persistent particles.
        width: The number of units of a hidden layer.
        depth: The number of hidden layers.
        sample_steps: Steps to draw a sample.
    """

    num_seeds: int = 1
    num_data: int = 1_000
    num_samples: int = 256
    num_epochs: int = 20
    num_steps: int = 30
    num_particles: int = 256
    width: int = 128
    depth: int = 3
    sample_steps: int = 1_500


def samples_to_learn(num: int) -> tuple[Particles, Particles]:
    """Return configurations to learn from, and others to compare with.

    Published samples if they are there, or the library's own reference samples.
    """
    published = published_clouds("lj13/test_split_LJ13-1000.npy", 13, 3)
    clouds = reference(SYSTEM, 2 * num, 2) if published is None else published
    clouds = jnp.asarray(clouds)
    num = min(num, len(clouds) // 2)
    return clouds[:num], clouds[num : 2 * num]


def stages(
    config: LJ13Config, seed: int, kept: pathlib.Path | None = None
) -> dict[str, Stage]:
    target = SYSTEM.target

    @functools.cache
    def sets() -> tuple[Particles, Particles]:
        return samples_to_learn(config.num_data)

    def learned(name: str, group: AbstractGroup) -> Stage:
        def stage() -> Outcome:
            data, held_out = sets()
            drawn, history = learned_clouds(config, seed, name, group, data, kept)
            return describe(held_out, drawn, history)

        return stage

    def floor() -> Outcome:
        data, held_out = sets()
        return describe(held_out, [data[: config.num_samples]])

    return {
        "plain": learned("plain", Trivial()),
        "equivariant": learned("equivariant", target.group),
        FLOOR: floor,
    }


def describe(
    held_out: Float[Array, "datum *shape"],
    sets: list[Particles],
    history: dict[str, np.ndarray] | None = None,
) -> Outcome:
    """Measure sets of configurations against those held out."""
    energy = jax.vmap(lambda x: -SYSTEM.target.log_density(x))
    rows = [
        measure(SYSTEM, held_out, points)
        | {
            "median_energy": float(jnp.median(energy(points))),
            "median_energy_of_data": float(jnp.median(energy(held_out))),
            "closest_pair": float(jnp.median(jnp.min(pair_distances(points), axis=1))),
        }
        for points in sets
    ]
    samples = jnp.concatenate(sets)
    return Outcome(
        metrics={name: np.array([row[name] for row in rows]) for name in rows[0]},
        samples=np.asarray(samples),
        history=history or {},
        arrays={
            "energies": np.asarray(energy(samples)),
            "distances": np.asarray(pair_distances(samples)).ravel(),
        },
    )


def draw(config: LJ13Config, outcomes: Mapping[str, Outcome]) -> dict:
    del config
    runs = {"data" if name == FLOOR else name: out for name, out in outcomes.items()}
    figures = {
        "configurations": configurations(
            {name: out.samples[:8] for name, out in runs.items()}, 2.5
        ),
        "energies": histograms(
            {name: out.arrays["energies"] for name, out in runs.items()},
            None, "energy in the true potential", limits=(-70.0, 60.0), bins=64,
        ),
        "distances": histograms(
            {name: out.arrays["distances"] for name, out in runs.items()},
            None, "distance of two particles", limits=SYSTEM.limits, bins=80,
        ),
    }  # fmt: skip
    series = {
        name: (
            out.history["step"][0],
            out.history["positive_energy"] - out.history["negative_energy"],
        )
        for name, out in runs.items()
        if out.history
    }
    if series:
        figures["training"] = curves(
            series, "energy of data minus energy of particles", exact=0.0,
            x_label="epoch",
        )  # fmt: skip
    return figures


LJ13 = Experiment(
    name="lj13",
    figure="beyond the paper",
    summary="learn LJ-13 from samples and draw new clusters",
    presets={
        "smoke": LJ13Config(
            num_data=40,
            num_samples=16,
            num_epochs=2,
            num_steps=4,
            num_particles=16,
            width=16,
            sample_steps=40,
        ),
        "quick": LJ13Config(),
        "paper": LJ13Config(num_seeds=5, num_data=5_000, num_epochs=100, width=256),
    },  # fmt: skip
    stages=stages,
    trains=True,
    draw=draw,
    notes={
        "plain": "The network sees coordinates.",
        "equivariant": "The network sees sorted distances and each particle's mean "
        "distance; the sampler's kernel is pulled back along the distances.",
    },
    captions={
        "energies": "Energies in the true potential, which the models never see. The "
        "pair energy rises by thousands within a tenth of a length, so that small "
        "errors of the model show as high energies here.",
        "distances": "The distances of all pairs.",
    },
)
