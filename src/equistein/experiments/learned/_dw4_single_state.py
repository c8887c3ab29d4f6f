"""Learn DW-4 from one of its states (paper, appendix E.1, figure DW4-Kohler)."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein._types import Key, Particles
from equistein.data import published_clouds
from equistein.experiments.engine._experiment import Entry, Experiment, Stage, Trial
from equistein.experiments.engine._figures import Bars, Configurations, Histograms
from equistein.experiments.learned._clouds import CloudConfig, learn_clouds, TINY
from equistein.experiments.learned._dw4 import noisy_copies, STATES
from equistein.experiments.systems._system import DW4_SYSTEM
from equistein.features import SortedDistances
from equistein.kernels import Pullback, RBF
from equistein.metrics import proportions
from equistein.runs import FLOOR, Outcome, seed_outcome
from equistein.samplers import run, SVGD, vector_adam
from equistein.targets import Minima
from equistein.training import Fitted

_RHOMBUS = 3  # its place among the five minima
_NEAR = 0.3  # root mean square gap of sorted distances, in the potential's units
_NOISE = 0.15  # of the computed copies, by coordinate
_TARGET = DW4_SYSTEM.target


@dataclasses.dataclass(frozen=True, kw_only=True)
class SingleStateConfig(CloudConfig):
    """Settings of `dw4-single-state`.

    Attributes:
        copies: Training configurations, all of one state.
        training_bandwidth: The bandwidth of the sampler that trains.
        bandwidths: Those that the trained energy is sampled with.
        sample_step_size: The step size at the beginning of these SVGD runs, in the
            units of the potential.
    """

    num_samples: int = 1_024
    copies: int = 1_000
    training_bandwidth: float = 0.001
    bandwidths: tuple[float, ...] = (0.0001, 0.02, 0.2, 2.0)
    sample_step_size: float = 0.05


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


def entries(config: SingleStateConfig) -> list[Entry]:
    @functools.cache
    def minima() -> Minima:
        return _TARGET.minima(jr.key(0))

    @functools.cache
    def data() -> Particles:
        return single_state(jr.key(1), minima(), config.copies)

    @functools.cache
    def trained(seed: int) -> Fitted:
        """Return the model of a seed, which all bandwidths share; it takes a minute."""
        trial, width = Trial("shared", 0, seed), config.training_bandwidth
        return learn_clouds(config, trial, _TARGET.group, data(), bandwidth=width)[0]

    def sampled(bandwidth: float) -> Stage:
        # Built once: a new optimizer would be compiled anew.
        decay = lambda i: (
            config.sample_step_size * jnp.maximum(1 - i / config.sample_steps, 0.01)
        )
        features = SortedDistances(_TARGET.group.species)
        sampler = SVGD(Pullback(RBF(bandwidth), features), vector_adam(decay))

        def stage(trial: Trial) -> Outcome:
            start_key, run_key = jr.split(jr.split(trial.key(0), 3)[2])
            samples = run(
                run_key, sampler, trained(trial.seed).log_density,
                _TARGET.start(start_key, config.num_samples),
                num_steps=config.sample_steps, check=False,
            )  # fmt: skip
            return described(minima(), samples.particles)

        return stage

    def own(trial: Trial) -> Outcome:
        key = jr.fold_in(trial.key(0), 1)
        samples = trained(trial.seed).sample(key, config.num_samples)
        return described(minima(), samples)

    notes = dict(
        zip((min(config.bandwidths), max(config.bandwidths)), _NOTES, strict=True)
    )
    return [
        *(
            Entry(name=f"bandwidth-{h:g}", stage=sampled(h), note=notes.get(h, ""))
            for h in config.bandwidths
        ),
        Entry(
            name="langevin-noise",
            stage=own,
            note="The library's own sampler, with noise: the learned distribution.",
        ),
        Entry(
            name=FLOOR,
            label="data",
            stage=lambda trial: described(minima(), data()),
            num_seeds=1,
        ),
    ]


_NOTES = (
    "Particles do not feel each other: each descends to the energy's one orbit.",
    "Repulsion across all configurations: some particles are held where the model has "
    "never seen data, and relax to other states by accident.",
)


def described(minima: Minima, points: Particles) -> Outcome:
    """Count the states in configurations."""
    num = len(STATES)
    near, gap = nearest_state(minima, points)
    states = np.where(np.asarray(gap) < _NEAR, np.asarray(near), num)
    found = np.asarray(proportions(jnp.asarray(states), num + 1))
    relaxed = np.asarray(proportions(_TARGET.states(points, minima), num))
    energies = jax.vmap(lambda x: -_TARGET.log_density(x))(points)
    numbers = {
        "states_found": np.sum(found[:-1] > 0),
        **dict(zip((*STATES, "no_state"), found, strict=True)),
        "states_after_relaxation": np.sum(relaxed > 0),
        "median_energy": np.median(energies),
    }
    return seed_outcome(
        numbers, points, arrays={"states": states, "energies": energies}
    )


def nearest_state(
    minima: Minima, points: Particles
) -> tuple[Array, Float[Array, " n"]]:
    """Return the state whose sorted distances are nearest, and the gap to it."""
    seen = jax.vmap(_TARGET.features)(points)
    gaps = jnp.sqrt(jnp.mean((seen[:, None] - minima.features[None]) ** 2, axis=-1))
    return jnp.argmin(gaps, axis=1), jnp.min(gaps, axis=1)


DW4_SINGLE_STATE = Experiment(
    name="dw4-single-state",
    figure="figure DW4-Kohler, appendix E.1",
    summary="learn DW-4 from one state: which bandwidths find others by accident",
    presets={
        "smoke": SingleStateConfig(
            copies=40, num_samples=32, bandwidths=(0.0001, 2.0), **TINY
        ),
        "quick": SingleStateConfig(),
        "paper": SingleStateConfig(num_seeds=5, num_epochs=120),
    },
    entries=entries,
    figures=(
        Configurations(
            "configurations",
            10,
            4.5,
            "states",
            caption="Configurations as drawn; the color tells the nearest state, if "
            f"its sorted distances are within {_NEAR} of the sample's.",
        ),
        Bars(
            "states",
            (*STATES, "no_state"),
            "fraction of the samples",
            caption="The fraction of the samples within that distance of each state.",
        ),
        Histograms(
            "energies", "energies", "energy in the true potential", limits=(-27.0, 15.0)
        ),
    ),
)
