"""Learn the double-well system from five configurations (paper, section 5, E.1)."""

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein._types import Key, Particles
from equistein.experiments._base import Experiment, seed_keys, Stage
from equistein.experiments.learned._clouds import learned_clouds
from equistein.groups import AbstractGroup, Trivial
from equistein.metrics import proportions, wasserstein_1d
from equistein.plotting import bars, configurations, curves, histograms
from equistein.runs import FLOOR, Outcome
from equistein.targets import DoubleWell, Minima

_NUM_STATES = 5


@dataclasses.dataclass(frozen=True, kw_only=True)
class DW4Config:
    """Settings of `dw4`.

    Attributes:
        num_seeds: The number of seeds, counted up from the run's seed.
        copies: Noisy copies of each of the five minima in the data.
        noise: Their standard deviation, by coordinate.
        num_samples: Samples drawn from each model, from fresh starts.
        num_epochs: Passes over the data.
        num_steps: Sampler steps a batch.
        num_particles: Persistent particles.
        width: The number of units of a hidden layer.
        depth: The number of hidden layers.
        sample_steps: Steps to draw a sample.
    """

    num_seeds: int = 1
    copies: int = 200
    noise: float = 0.1
    num_samples: int = 1_000
    num_epochs: int = 60
    num_steps: int = 60
    num_particles: int = 256
    width: int = 128
    depth: int = 3
    sample_steps: int = 1_500


def noisy_copies(key: Key, minima: Minima, copies: int, noise: float) -> Particles:
    """Return `copies` noisy copies of each minimum, centered, state after state."""
    points = jnp.repeat(minima.points, copies, axis=0)
    points = points + noise * jr.normal(key, points.shape, points.dtype)
    return points - jnp.mean(points, axis=1, keepdims=True)


def stages(
    config: DW4Config, seed: int, kept: pathlib.Path | None = None
) -> dict[str, Stage]:
    target = DoubleWell()
    minima = target.minima(jr.key(0))
    data = noisy_copies(jr.key(1), minima, config.copies, config.noise)

    def learned(name: str, group: AbstractGroup) -> Stage:
        def stage() -> Outcome:
            sets, history = learned_clouds(config, seed, name, group, data, kept)
            return describe(target, minima, data, sets, history)

        return stage

    def potential() -> Outcome:
        keys = seed_keys(seed, config.num_seeds, 1)
        sets = [target.sample(key, config.num_samples) for key in keys]
        return describe(target, minima, data, sets)

    def floor() -> Outcome:
        copies = -(-config.num_samples // len(minima.energies))
        sets = [
            noisy_copies(key, minima, copies, config.noise)
            for key in seed_keys(seed, 10, 2)
        ]
        return describe(target, minima, data, sets)

    return {
        "potential": potential,
        "plain": learned("plain", Trivial()),
        "equivariant": learned("equivariant", target.group),
        FLOOR: floor,
    }


def describe(
    target: DoubleWell,
    minima: Minima,
    data: Float[Array, "datum *shape"],
    sets: Sequence[Particles],
    history: dict[str, np.ndarray] | None = None,
) -> Outcome:
    """Measure sets of configurations against the data."""
    energy = jax.jit(jax.vmap(lambda x: -target.log_density(x)))
    features = jax.jit(jax.vmap(target.features))
    known, at_data = features(data), energy(data)
    rows, states, energies, gaps_to_data = [], [], [], []
    for points in sets:
        values, described = energy(points), features(points)
        labels = target.states(points, minima)
        held = proportions(labels, _NUM_STATES)
        gaps = jnp.max(jnp.abs(described[:, None] - minima.features[None]), axis=-1)
        nearest = jnp.min(
            jnp.sqrt(jnp.mean((described[:, None] - known[None]) ** 2, axis=-1)), axis=1
        )
        rows.append(
            {
                "median_energy": jnp.median(values),
                "median_energy_of_data": jnp.median(at_data),
                "energy_w2": wasserstein_1d(values, at_data, order=2),
                "states_found": jnp.sum(held > 0),
                **{f"state_{i + 1}": held[i] for i in range(_NUM_STATES)},
                "smallest_share": jnp.min(held),
                "largest_share": jnp.max(held),
                "near_a_state": jnp.mean(jnp.min(gaps, axis=1) < 0.6),
                "distance_to_data": jnp.median(nearest),
            }
        )
        states.append(np.asarray(labels))
        energies.append(np.asarray(values))
        gaps_to_data.append(np.asarray(nearest))
    return Outcome(
        metrics={
            name: np.array([float(row[name]) for row in rows]) for name in rows[0]
        },
        samples=np.concatenate([np.asarray(points) for points in sets]),
        history=history or {},
        arrays={
            "states": np.concatenate(states),
            "energies": np.concatenate(energies),
            "data_energies": np.asarray(at_data),
            "nearest": np.concatenate(gaps_to_data),
        },
    )


def draw(config: DW4Config, outcomes: Mapping[str, Outcome]) -> dict:
    runs = {_LABELS[name]: outcome for name, outcome in outcomes.items()}
    # Ten of the first seed, spread evenly: the data comes state after state.
    pick = np.linspace(0, config.num_samples - 1, 10).astype(int)
    shown = {name: outcome.samples[pick] for name, outcome in runs.items()}
    colors = np.stack([outcome.arrays["states"][pick] for outcome in runs.values()])
    figures = {
        "configurations": configurations(shown, 4.5, colors),
        "energies": histograms(
            {name: out.arrays["energies"] for name, out in runs.items()},
            None,
            "energy in the true potential",
            limits=(-27.0, 5.0),
            bins=64,
        ),
        "novelty": histograms(
            {name: out.arrays["nearest"] for name, out in runs.items()},
            None,
            "distance to the nearest training configuration",
            limits=(0.0, 1.5),
            bins=60,
        ),
        "states": bars(
            {
                name: np.array(
                    [out.metrics[f"state_{i + 1}"].mean() for i in range(_NUM_STATES)]
                )
                for name, out in runs.items()
            },
            [f"state {i + 1}" for i in range(_NUM_STATES)],
            "share of the samples",
        ),
    }
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
            series,
            "energy of data minus energy of particles",
            exact=0.0,
            x_label="epoch",
        )
    return figures


_LABELS = {
    FLOOR: "data",
    "potential": "true potential",
    "plain": "plain EBM, SVGD",
    "equivariant": "equivariant EBM, E-SVGD",
}

DW4 = Experiment(
    name="dw4",
    figure="figure dw4, section 5 and appendix E.1",
    summary="learn DW-4 from noisy copies of its five minima and draw new ones",
    presets={
        "smoke": DW4Config(
            copies=20,
            num_samples=32,
            num_epochs=2,
            num_steps=4,
            num_particles=16,
            width=16,
            sample_steps=40,
        ),  # fmt: skip
        "quick": DW4Config(),
        "paper": DW4Config(num_seeds=5, num_epochs=120),
    },
    stages=stages,
    trains=True,
    draw=draw,
    notes={
        "potential": "Samples of the true potential at temperature 1, by Markov "
        "chains: its states have other shares than the data, where all are equal.",
        "plain": "The network sees coordinates: what it learns of a configuration says "
        "nothing about the same configuration turned or relabelled.",
        "equivariant": "The network sees sorted distances, and the sampler's kernel is "
        "pulled back along them.",
    },
    captions={
        "configurations": "Configurations as drawn from fresh starts, not relaxed; the "
        "color tells the state each relaxes to.",
        "energies": "Energies in the true potential. The models never see it.",
        "novelty": "Root mean square gap of the sorted distances to those of the "
        "nearest training configuration; `data` are fresh noisy copies of the minima. "
        "A model that copies would have a peak at zero.",
        "states": "The share of each state among the samples, after relaxation.",
        "training": "The gap that contrastive divergence closes: mean and range over "
        "the seeds.",
    },
)
