"""Learn the double-well system from five configurations (paper, section 5, E.1)."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein._types import Key, Particles
from equistein.experiments.engine._experiment import Entry, Experiment, Trial
from equistein.experiments.engine._figures import Bars, Configurations, Histograms
from equistein.experiments.learned._clouds import cloud_models, CloudConfig, GAP, TINY
from equistein.experiments.systems._system import DW4_SYSTEM
from equistein.metrics import proportions, wasserstein_1d
from equistein.runs import FLOOR, Outcome, seed_outcome
from equistein.targets import Minima

STATES = tuple(f"state_{i + 1}" for i in range(5))
_NEAR = 0.6  # the largest gap of sorted distances to a state's


@dataclasses.dataclass(frozen=True, kw_only=True)
class DW4Config(CloudConfig):
    """Settings of `dw4`.

    Attributes:
        copies: Noisy copies of each of the five minima in the data.
        noise: Their standard deviation, by coordinate.
    """

    copies: int = 200
    noise: float = 0.1


def noisy_copies(key: Key, minima: Minima, copies: int, noise: float) -> Particles:
    """Return `copies` noisy copies of each minimum, centered, state after state."""
    points = jnp.repeat(minima.points, copies, axis=0)
    points = points + noise * jr.normal(key, points.shape, points.dtype)
    return points - jnp.mean(points, axis=1, keepdims=True)


def entries(config: DW4Config) -> list[Entry]:
    target, num = DW4_SYSTEM.target, config.num_samples

    @functools.cache
    def minima() -> Minima:
        return target.minima(jr.key(0))

    @functools.cache
    def data() -> Particles:
        return noisy_copies(jr.key(1), minima(), config.copies, config.noise)

    def describe(points: Particles, **kept: Any) -> Outcome:
        return described(minima(), data(), points, **kept)

    def potential(trial: Trial) -> Outcome:
        return describe(target.sample(trial.key(1), num))

    def floor(trial: Trial) -> Outcome:
        copies = -(-num // len(STATES))
        return describe(noisy_copies(trial.key(2), minima(), copies, config.noise))

    notes = (
        "The network sees coordinates: what it learns of a configuration says nothing "
        "about the same configuration turned or relabeled.",
        "The network sees sorted distances, and the sampler's kernel is pulled back "
        "along them.",
    )
    return [
        Entry(
            name="potential",
            label="true potential",
            stage=potential,
            note="Samples of the true potential at temperature 1, by Markov chains: "
            "its states have other fractions than the data, where all are equal.",
        ),
        *cloud_models(config, target.group, data, describe, notes),
        Entry(name=FLOOR, label="data", stage=floor, num_seeds=10),
    ]


@jax.jit
def _compared(
    data: Float[Array, "datum *shape"], minima: Minima, points: Particles
) -> tuple[dict[str, Array], dict[str, Array]]:
    energy = jax.vmap(lambda x: -DW4_SYSTEM.target.log_density(x))
    features = jax.vmap(DW4_SYSTEM.target.features)
    seen = features(points)
    gaps = jnp.max(jnp.abs(seen[:, None] - minima.features[None]), axis=-1)
    apart = jnp.mean((seen[:, None] - features(data)[None]) ** 2, axis=-1)
    nearest = jnp.min(jnp.sqrt(apart), axis=1)
    at_data, values = energy(data), energy(points)
    numbers = {
        "median_energy": jnp.median(values),
        "median_energy_of_data": jnp.median(at_data),
        "energy_w2": wasserstein_1d(values, at_data, order=2),
        "near_a_state": jnp.mean(jnp.min(gaps, axis=1) < _NEAR),
        "distance_to_data": jnp.median(nearest),
    }
    return numbers, {"energies": values, "nearest": nearest}


def described(
    minima: Minima,
    data: Float[Array, "datum *shape"],
    points: Particles,
    **kept: Any,
) -> Outcome:
    """Measure configurations against the data."""
    numbers, arrays = _compared(data, minima, points)
    states = DW4_SYSTEM.target.states(points, minima)
    held = np.asarray(proportions(states, len(STATES)))
    numbers |= dict(zip(STATES, held, strict=True)) | {
        "states_found": np.sum(held > 0),
        "smallest_share": held.min(),
        "largest_share": held.max(),
    }
    return seed_outcome(numbers, points, arrays=arrays | {"states": states}, **kept)


DW4 = Experiment(
    name="dw4",
    figure="figure dw4, section 5 and appendix E.1",
    summary="learn DW-4 from noisy copies of its five minima and draw new ones",
    presets={
        "smoke": DW4Config(copies=20, num_samples=32, **TINY),
        "quick": DW4Config(),
        "paper": DW4Config(num_seeds=5, num_epochs=120),
    },
    entries=entries,
    figures=(
        Configurations(
            "configurations",
            10,
            4.5,
            "states",
            caption="Configurations as drawn from fresh starts, not relaxed; the color "
            "tells the state each relaxes to.",
        ),
        Histograms(
            "energies", "energies", "energy in the true potential", limits=(-27.0, 5.0)
        ),
        Histograms(
            "novelty",
            "nearest",
            "distance to the nearest training configuration",
            limits=(0.0, 1.5),
            caption="Root mean square gap of the sorted distances to those of the "
            "nearest training configuration; `data` are fresh noisy copies of the "
            "minima. A model that copies would have a peak at zero.",
        ),
        Bars("states", STATES, "fraction of the samples"),
        GAP,
    ),
)
