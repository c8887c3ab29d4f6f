"""Learn DW-4 from one of its states (paper, appendix E.1, figure DW4-Kohler)."""

import dataclasses
import functools
import pathlib
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein._types import Key, Particles
from equistein.data import published_clouds
from equistein.energies import energy_for
from equistein.experiments._base import Experiment, seed_keys, Stage
from equistein.experiments.learned._dw4 import noisy_copies
from equistein.features import SortedDistances
from equistein.kernels import Pullback, RBF
from equistein.metrics import proportions
from equistein.plotting import bars, configurations, histograms
from equistein.runs import FLOOR, Outcome
from equistein.samplers import run, SVGD, vector_adam
from equistein.targets import DoubleWell, Minima
from equistein.training import fit, FitConfig, Fitted

_RHOMBUS = 3  # its place among the five minima
_NUM_STATES = 5
_NEAR = 0.3  # root mean square gap of sorted distances, in the potential's units
_NOISE = 0.15  # of the computed copies, by coordinate


@dataclasses.dataclass(frozen=True, kw_only=True)
class SingleStateConfig:
    """Settings of `dw4-single-state`.

    Attributes:
        num_seeds: The number of seeds, counted up from the run's seed.
        copies: Training configurations, all of one state.
        num_samples: Samples drawn with each bandwidth, from fresh starts.
        num_epochs: Passes over the data.
        num_steps: Sampler steps a batch.
        num_particles: Persistent particles.
        width: The number of units of a hidden layer.
        depth: The number of hidden layers.
        training_bandwidth: The bandwidth of the sampler that trains.
        bandwidths: Those that the trained energy is sampled with.
        sample_steps: SVGD steps of a sample.
        sample_step: Their length at the beginning, in the units of the potential.
    """

    num_seeds: int = 1
    copies: int = 1_000
    num_samples: int = 1_024
    num_epochs: int = 60
    num_steps: int = 60
    num_particles: int = 256
    width: int = 128
    depth: int = 3
    training_bandwidth: float = 0.001
    bandwidths: tuple[float, ...] = (0.0001, 0.02, 0.2, 2.0)
    sample_steps: int = 1_500
    sample_step: float = 0.05


def single_state(key: Key, minima: Minima, copies: int) -> Particles:
    """Return the data of Köhler et al. if they are there, or noisy copies of a rhombus.

    Args:
        key: The source of the noise.
        minima: The minima of the potential, lowest first.
        copies: How many.
    """
    published = published_clouds("dw4/dimer_4particles.npy", 4, 2)
    if published is not None:
        return jnp.asarray(published[-copies:])  # the paper's code takes the last ones
    rhombus = jax.tree.map(lambda leaf: leaf[_RHOMBUS : _RHOMBUS + 1], minima)
    return noisy_copies(key, rhombus, copies, _NOISE)


def stages(
    config: SingleStateConfig, seed: int, kept: pathlib.Path | None = None
) -> dict[str, Stage]:
    target = DoubleWell()
    minima = target.minima(jr.key(0))
    data = single_state(jr.key(1), minima, config.copies)
    keys = seed_keys(seed, config.num_seeds, 0)
    settings = FitConfig(
        num_epochs=config.num_epochs,
        batch_size=min(128, config.copies),
        num_steps=config.num_steps,
        num_particles=config.num_particles,
        bandwidth=config.training_bandwidth,
        sample_steps=config.sample_steps,
    )

    @functools.cache
    def trained(index: int) -> Fitted:
        """Return the model of a seed, which all bandwidths share."""
        energy_key, fit_key, _ = jr.split(keys[index], 3)
        widths = (config.width,) * config.depth
        energy = energy_for(energy_key, target.group, data, widths=widths)
        return fit(fit_key, energy, data, settings, progress=True)

    def sampled(bandwidth: float) -> Stage:
        # Built once: a new optimizer would be compiled anew.
        decay = lambda i: (
            config.sample_step * jnp.maximum(1 - i / config.sample_steps, 0.01)
        )
        features = SortedDistances(target.group.species)
        sampler = SVGD(Pullback(RBF(bandwidth), features), vector_adam(decay))

        def stage() -> Outcome:
            sets = []
            for index, key in enumerate(keys):
                start_key, run_key = jr.split(jr.split(key, 3)[2])
                samples = run(
                    run_key, sampler, trained(index).log_density,
                    target.start(start_key, config.num_samples),
                    num_steps=config.sample_steps, check=False,
                )  # fmt: skip
                sets.append(samples.particles)
            return describe(target, minima, sets)

        return stage

    def own() -> Outcome:
        sets = [
            trained(index).sample(jr.fold_in(key, 1), config.num_samples)
            for index, key in enumerate(keys)
        ]
        return describe(target, minima, sets)

    del kept  # the models train in half a minute, and all stages share them
    return {
        **{f"bandwidth-{h:g}": sampled(h) for h in config.bandwidths},
        "langevin-noise": own,
        FLOOR: lambda: describe(target, minima, [data]),
    }


def describe(target: DoubleWell, minima: Minima, sets: list[Particles]) -> Outcome:
    """Count the states in sets of configurations."""
    rows, states, energies = [], [], []
    for points in sets:
        near, gap = nearest_state(target, minima, points)
        found = proportions(jnp.where(gap < _NEAR, near, _NUM_STATES), _NUM_STATES + 1)
        relaxed = proportions(target.states(points, minima), _NUM_STATES)
        values = jax.vmap(lambda x: -target.log_density(x))(points)
        rows.append(
            {
                "states_found": jnp.sum(found[:-1] > 0),
                **{f"state_{i + 1}": found[i] for i in range(_NUM_STATES)},
                "no_state": found[-1],
                "states_after_relaxation": jnp.sum(relaxed > 0),
                "median_energy": jnp.median(values),
            }
        )
        states.append(np.where(np.asarray(gap) < _NEAR, np.asarray(near), _NUM_STATES))
        energies.append(np.asarray(values))
    return Outcome(
        metrics={
            name: np.array([float(row[name]) for row in rows]) for name in rows[0]
        },
        samples=np.concatenate([np.asarray(points) for points in sets]),
        arrays={"states": np.concatenate(states), "energies": np.concatenate(energies)},
    )


def nearest_state(
    target: DoubleWell, minima: Minima, points: Particles
) -> tuple[Array, Float[Array, " n"]]:
    """Return the state whose sorted distances are nearest, and the gap to it."""
    described = jax.vmap(target.features)(points)
    gaps = jnp.sqrt(
        jnp.mean((described[:, None] - minima.features[None]) ** 2, axis=-1)
    )
    return jnp.argmin(gaps, axis=1), jnp.min(gaps, axis=1)


def draw(config: SingleStateConfig, outcomes: Mapping[str, Outcome]) -> dict:
    labels = {name: "data" if name == FLOOR else name for name in outcomes}
    num = min(10, config.num_samples, config.copies)
    # Spread evenly: the data is one long trajectory.
    picks = {
        name: np.linspace(0, len(out.samples) - 1, num).astype(int)
        for name, out in outcomes.items()
    }
    shown = {labels[n]: out.samples[picks[n]] for n, out in outcomes.items()}
    colors = np.stack([out.arrays["states"][picks[n]] for n, out in outcomes.items()])
    kinds = [f"state_{i + 1}" for i in range(_NUM_STATES)] + ["no_state"]
    return {
        "configurations": configurations(shown, 4.5, colors),
        "states": bars(
            {
                labels[name]: np.array([out.metrics[kind].mean() for kind in kinds])
                for name, out in outcomes.items()
            },
            [kind.replace("_", " ") for kind in kinds],
            "share of the samples",
        ),
        "energies": histograms(
            {labels[name]: out.arrays["energies"] for name, out in outcomes.items()},
            None, "energy in the true potential", limits=(-27.0, 15.0), bins=64,
        ),
    }  # fmt: skip


DW4_SINGLE_STATE = Experiment(
    name="dw4-single-state",
    figure="figure DW4-Kohler, appendix E.1",
    summary="learn DW-4 from one state: which bandwidths find others by accident",
    presets={
        "smoke": SingleStateConfig(
            copies=40,
            num_samples=32,
            num_epochs=2,
            num_steps=4,
            num_particles=16,
            width=16,
            bandwidths=(0.0001, 2.0),
            sample_steps=40,
        ),
        "quick": SingleStateConfig(),
        "paper": SingleStateConfig(num_seeds=5, num_epochs=120),
    },  # fmt: skip
    stages=stages,
    trains=True,
    draw=draw,
    notes={
        "bandwidth-0.0001": "Particles do not feel each other: each descends to the "
        "energy's one orbit.",
        "bandwidth-2": "Repulsion across all configurations: some particles are held "
        "where the model has never seen data, and relax to other states by accident.",
        "langevin-noise": "The library's own sampler, with noise: the learned law.",
    },
    captions={
        "configurations": "Configurations as drawn; the color tells the nearest state, "
        f"if its sorted distances are within {_NEAR} of the sample's.",
        "states": "The share of the samples within that distance of each state.",
        "energies": "Energies in the true potential, which the model never sees.",
    },
)
