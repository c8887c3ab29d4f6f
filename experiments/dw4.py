"""Learn the double-well system from five configurations (paper, section 5, E.1)."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein.groups import AbstractGroup, Trivial
from equistein.metrics import proportions, wasserstein_1d
from equistein.models import LinearSettings
from equistein.runs import FLOOR, Outcome, seed_outcome
from equistein.targets import Minima
from experiments._engine import Entry, Experiment, Key, Particles, Trial
from experiments._figures import configurations, histograms
from experiments._systems import CloudConfig, fit_as_set, learn_clouds, SYSTEMS, TINY

DW4_SYSTEM = SYSTEMS["dw4"]
TARGET = DW4_SYSTEM.target
STATES = tuple(f"state_{i + 1}" for i in range(5))
_NEAR = 0.6  # the largest gap of sorted distances to a state's
_NOISE = 0.1  # of the copies, by coordinate


@dataclasses.dataclass(frozen=True, kw_only=True)
class DW4Config(CloudConfig):
    """Settings of `dw4`.

    Attributes:
        copies: Noisy copies of each of the five minima in the data.
        linear_steps: Steps to draw a sample of the linear energy.
    """

    num_epochs: int = 120
    cooling_fraction: float = 0.0
    copies: int = 200
    linear_steps: int = 500


@functools.cache
def minima() -> Minima:
    """Return the minima of DW-4."""
    return TARGET.minima(jr.key(0))


def noisy_copies(
    key: Key, states: Float[Array, "state *shape"], copies: int, noise: float
) -> Particles:
    """Return `copies` noisy copies of each state, centered, one state after another."""
    points = jnp.repeat(states, copies, axis=0)
    points = points + noise * jr.normal(key, points.shape, points.dtype)
    return points - jnp.mean(points, axis=1, keepdims=True)


def entries(config: DW4Config) -> list[Entry]:
    """Return the models, the potential and the floor."""
    num = config.num_samples

    @functools.cache
    def data() -> Particles:
        return noisy_copies(jr.key(1), minima().points, config.copies, _NOISE)

    def learned(group: AbstractGroup, by_solve: bool, trial: Trial) -> Outcome:
        if by_solve:
            settings = LinearSettings(sample_steps=config.linear_steps)
            fitted, key = fit_as_set(settings, trial, group, data())
        else:
            fitted, key = learn_clouds(config, trial, group, data())
        samples = jax.vmap(TARGET.group.project)(fitted.sample(key, num))
        kept = {"history": fitted.history, "events": fitted.events}
        return described(data(), samples, **kept)

    def floor(trial: Trial) -> Outcome:
        copies = -(-num // len(STATES))
        points = noisy_copies(trial.key(2), minima().points, copies, _NOISE)
        return described(data(), points)

    return [
        Entry(
            "potential",
            lambda trial: described(data(), TARGET.sample(trial.key(1), num)),
            "Samples of the true potential at temperature 1, by Markov chains: its "
            "states have other fractions than the data, where all are equal.",
            label="true potential",
        ),
        Entry(
            "plain", functools.partial(learned, Trivial(), False),
            "The network sees coordinates: what it learns of a configuration says "
            "nothing about the same configuration turned or relabeled.",
            label="plain EBM, SVGD", trains=True,
        ),
        Entry(
            "equivariant", functools.partial(learned, TARGET.group, False),
            "The network sees sorted distances, and the sampler's kernel is pulled "
            "back along them.", label="equivariant EBM, E-SVGD", trains=True,
        ),
        Entry(
            "linear", functools.partial(learned, TARGET.group, True),
            "Functions of distance, by one solve, moved until samples have their means "
            "in the data. Fractions of states that no data connect stay wrong.",
            label="linear energy, one solve", trains=True,
        ),
        Entry(FLOOR, floor, label="data", num_seeds=10),
    ]  # fmt: skip


def described(
    data: Float[Array, "datum *shape"], points: Particles, **kept: Any
) -> Outcome:
    """Measure configurations against the data."""
    features = jax.vmap(TARGET.features)
    seen = features(points)
    gaps = jnp.max(jnp.abs(seen[:, None] - minima().features[None]), axis=-1)
    apart = jnp.mean((seen[:, None] - features(data)[None]) ** 2, axis=-1)
    nearest = jnp.min(jnp.sqrt(apart), axis=1)
    energies, at_data = DW4_SYSTEM.energy(points), DW4_SYSTEM.energy(data)
    states = TARGET.states(points, minima())
    held = np.asarray(proportions(states, len(STATES)))
    numbers = {
        "median_energy": jnp.median(energies),
        "median_energy_of_data": jnp.median(at_data),
        "energy_w2": wasserstein_1d(energies, at_data, order=2),
        "near_a_state": jnp.mean(jnp.min(gaps, axis=1) < _NEAR),
        "distance_to_data": jnp.median(nearest),
        **dict(zip(STATES, held, strict=True)),
        "states_found": np.sum(held > 0),
        "smallest_fraction": held.min(),
        "largest_fraction": held.max(),
        "largest_error_of_a_fraction": np.abs(held - 1 / len(STATES)).max(),
    }
    arrays = {"energies": energies, "states": states}
    return seed_outcome(numbers, points, arrays=arrays, **kept)


DW4 = Experiment(
    name="dw4",
    figure="figure 7, section 5 and appendix E.1",
    headlines=("energy_w2", "largest_error_of_a_fraction", "states_found"),
    summary="learn DW-4 from noisy copies of its five minima and draw new ones",
    presets={
        "smoke": DW4Config(copies=20, linear_steps=8, **TINY),
        "quick": DW4Config(num_particles=128),
        "paper": DW4Config(num_seeds=5),
    },
    entries=entries,
    figures=(
        configurations(
            10, 4.5, "states",
            "Configurations as drawn from fresh starts, not relaxed; the color tells "
            "the state each relaxes to.",
        ),
        histograms(
            "energies", "energies", "energy in the true potential", limits=(-27.0, 5.0)
        ),
    ),
)  # fmt: skip
