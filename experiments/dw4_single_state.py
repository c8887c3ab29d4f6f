"""Learn DW-4 from one of its states (paper, appendix E.1, figure 12)."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from equistein.data import published_clouds
from equistein.kernels import Pullback, RBF
from equistein.metrics import proportions
from equistein.runs import FLOOR, Outcome, seed_outcome
from equistein.samplers import run, SVGD, vector_adam
from equistein.training import Fitted
from experiments._engine import Entry, Experiment, Particles, Stage, Trial
from experiments._figures import configurations, histograms
from experiments._systems import CloudConfig, learn_clouds, TINY
from experiments.dw4 import DW4_SYSTEM, minima, noisy_copies, STATES, TARGET

_RHOMBUS = 3  # its place among the five minima
_NEAR = 0.3  # root mean square gap of sorted distances, in the potential's units
_NOISE = 0.15  # of the computed copies, by coordinate
_TRAINING_BANDWIDTH = 0.001
_STEP_SIZE = 0.05  # of SVGD at its beginning, in the potential's units


@dataclasses.dataclass(frozen=True, kw_only=True)
class SingleStateConfig(CloudConfig):
    """Settings of `dw4-single-state`.

    Attributes:
        copies: Training configurations, all of one state.
        bandwidths: Those that the trained energy is sampled with.
    """

    num_samples: int = 1_024
    copies: int = 1_000
    bandwidths: tuple[float, ...] = (0.0001, 0.02, 0.2, 2.0)


def single_state(copies: int) -> Particles:
    """Return the data of Köhler et al. if they are there, or copies of a rhombus."""
    published = published_clouds("dw4/dimer_4particles.npy", 4, 2)
    if published is not None:
        return jnp.asarray(published[-copies:])  # the paper's code takes the last ones
    rhombus = minima().points[_RHOMBUS : _RHOMBUS + 1]
    return noisy_copies(jr.key(1), rhombus, copies, _NOISE)


def entries(config: SingleStateConfig) -> list[Entry]:
    """Return the bandwidths and the floor."""
    data = functools.cache(lambda: single_state(config.copies))

    @functools.cache
    def trained(seed: int) -> Fitted:
        """Return the model of a seed, which all bandwidths share; it takes a minute."""
        trial = Trial("shared", 0, seed)
        return learn_clouds(
            config, trial, TARGET.group, data(), bandwidth=_TRAINING_BANDWIDTH
        )[0]

    def sampled(bandwidth: float) -> Stage:
        decay = lambda i: _STEP_SIZE * jnp.maximum(1 - i / config.sample_steps, 0.01)
        sampler = SVGD(Pullback(RBF(bandwidth), TARGET.features), vector_adam(decay))

        def stage(trial: Trial) -> Outcome:
            start_key, run_key = jr.split(jr.split(trial.key(0), 3)[2])
            samples = run(
                run_key, sampler, trained(trial.seed).log_density,
                TARGET.start(start_key, config.num_samples),
                num_steps=config.sample_steps, check=False,
            )  # fmt: skip
            return described(samples.particles)

        return stage

    def own(trial: Trial) -> Outcome:
        key = jr.fold_in(trial.key(0), 1)
        return described(trained(trial.seed).sample(key, config.num_samples))

    notes = {
        min(config.bandwidths): "Particles do not interact: each descends to "
        "the energy's one orbit.",
        max(config.bandwidths): "Repulsion across all configurations: some particles "
        "are held where the model has never seen data, and relax to other states by "
        "accident.",
    }
    return [
        *(
            Entry(f"bandwidth-{h:g}", sampled(h), notes.get(h, ""))
            for h in config.bandwidths
        ),
        Entry(
            "langevin-noise", own,
            "The library's own sampler, with noise: the learned distribution.",
        ),
        Entry(FLOOR, lambda trial: described(data()), label="data", num_seeds=1),
    ]  # fmt: skip


def described(points: Particles) -> Outcome:
    """Count the states that configurations are in, or near none, and relax to."""
    num, seen = len(STATES), jax.vmap(TARGET.features)(points)
    gaps = jnp.mean((seen[:, None] - minima().features[None]) ** 2, axis=-1) ** 0.5
    near = jnp.min(gaps, axis=1) < _NEAR
    states = jnp.where(near, jnp.argmin(gaps, axis=1), num)
    found = np.asarray(proportions(states, num + 1))
    relaxed = np.asarray(proportions(TARGET.states(points, minima()), num))
    energies = DW4_SYSTEM.energy(points)
    numbers = {
        "states_found": np.sum(found[:-1] > 0),
        **dict(zip((*STATES, "no_state"), found, strict=True)),
        "states_after_relaxation": np.sum(relaxed > 0),
        "median_energy": jnp.median(energies),
    }
    arrays = {"states": states, "energies": energies}
    return seed_outcome(numbers, points, arrays=arrays)


DW4_SINGLE_STATE = Experiment(
    name="dw4-single-state",
    figure="figure 12, appendix E.1",
    headlines=("states_found", "states_after_relaxation", "median_energy"),
    summary="learn DW-4 from one state: which bandwidths find others by accident",
    presets={
        "smoke": SingleStateConfig(copies=40, bandwidths=(0.0001, 2.0), **TINY),
        "quick": SingleStateConfig(),
        "paper": SingleStateConfig(num_seeds=5, num_epochs=120),
    },
    entries=entries,
    figures=(
        configurations(
            10, 4.5, "states",
            "Configurations as drawn; the color tells the nearest state, if its sorted "
            f"distances are within {_NEAR} of the sample's.",
        ),
        histograms(
            "energies", "energies", "energy in the true potential", limits=(-27.0, 15.0)
        ),
    ),
)  # fmt: skip
