"""The Lennard-Jones fluid beside NIST's table, and learned from its frames."""

import dataclasses
import functools
import time

import jax
import numpy as np

from equistein.metrics import radial_distribution
from equistein.models import LinearSettings
from equistein.runs import Metric, Outcome, seed_outcome
from equistein.targets import LennardJonesFluid
from experiments._engine import AbstractConfig, Entry, Experiment, Particles, Trial
from experiments._figures import curves
from experiments._metrics import METRICS
from experiments._systems import fit_as_set

# By temperature and density: energy a particle and pressure, each with its error, of
# the NIST Standard Reference Simulation Website, Monte Carlo of 500 particles.
_NIST = {
    (0.85, 0.776): (-5.5121, 4.55e-4, 6.7714e-3, 1.72e-3),
    (0.85, 0.82): (-5.7947, 6.0e-4, 0.55355, 3.1e-3),
    (0.85, 0.86): (-6.0305, 2.38e-3, 1.2660, 1.36e-2),
    (0.9, 0.776): (-5.4689, 4.2e-4, 0.24056, 2.74e-3),
    (0.9, 0.82): (-5.7456, 6.0e-4, 0.82386, 3.0e-3),
    (0.9, 0.86): (-5.9753, 1.0e-3, 1.5781, 4.0e-3),
}
_LEARNED = (0.85, 0.82)
_BINS = 80


@dataclasses.dataclass(frozen=True, kw_only=True)
class LJFluidConfig(AbstractConfig):
    """Settings of `lj-fluid`.

    Attributes:
        num_particles: Particles in the cube.
        num_states: Rows of NIST's table.
        num_samples: Samples of each state, and of the learned energy.
        num_steps: Steps of Hamiltonian Monte Carlo before the first sample.
        num_frames: Samples of one state from which an energy is learned.
    """

    num_seeds: int = 1
    num_particles: int = 500
    num_states: int = 3
    num_samples: int = 64
    num_steps: int = 400
    num_frames: int = 200


def fluid_at(config: LJFluidConfig, state: tuple[float, float]) -> LennardJonesFluid:
    """Return the fluid at a temperature and density."""
    temperature, density = state
    return LennardJonesFluid(
        config.num_particles, density=density, temperature=temperature
    )


def describe(fluid: LennardJonesFluid, points: Particles, **more: float) -> Outcome:
    """Return energy and pressure beside those of NIST, and g(r)."""
    energies, pressures = map(np.asarray, fluid.energy_and_pressure(points))
    numbers, row = dict(more), _NIST[fluid.temperature, fluid.density]
    for name, values, known, error in (
        ("energy", energies, *row[:2]), ("pressure", pressures, *row[2:]),
    ):  # fmt: skip
        own = np.std(values) / len(values) ** 0.5
        mean = np.mean(values)
        gap = (mean - known) / np.hypot(own, error)
        numbers |= {name: mean, f"{name}_error": own, f"{name}_gap": gap}
    found = radial_distribution(points, fluid.group, num_bins=_BINS)
    stacked = {"distance": found.distances, "g": found.values}
    return seed_outcome(numbers, points, stacked=stacked)


@functools.cache
def frames_of(config: LJFluidConfig, seed: int) -> Particles:
    """Return samples of one state: to learn an energy from, and to compare with."""
    fluid, num = fluid_at(config, _LEARNED), config.num_frames + config.num_samples
    return fluid.sample(seed, num, num_steps=config.num_steps)


def learn(config: LJFluidConfig, trial: Trial) -> Outcome:
    """Learn a sum over pairs from frames alone, and sample it from a grid."""
    fluid, frames = fluid_at(config, _LEARNED), frames_of(config, trial.seed)
    data, others = frames[: config.num_frames], frames[config.num_frames :]
    start = time.perf_counter()
    settings = LinearSettings(sample_steps=config.num_steps)
    fitted, key = fit_as_set(settings, trial, fluid.group, data)
    seconds = time.perf_counter() - start
    forces, learned = (
        np.asarray(jax.lax.map(jax.grad(f), others))
        for f in (fluid.log_density, fitted.log_density)
    )
    gaps = np.linalg.norm(learned - forces) / np.linalg.norm(forces)
    points = fitted.sample(key, config.num_samples)
    known, found = (
        radial_distribution(p, fluid.group, num_bins=_BINS).values
        for p in (frames, points)
    )
    beyond = np.argmax(known > 1)  # the inner edge of the first shell
    error = np.max(np.abs(found - known)[beyond:] / known[beyond:])
    numbers = {"force_error": gaps, "g_error": error, "solve_seconds": seconds}
    return describe(fluid, points, **numbers)


def entries(config: LJFluidConfig) -> list[Entry]:
    """Return the states of the table, and one learned from its frames."""

    def at(state: tuple[float, float]) -> Entry:
        def sample(trial: Trial) -> Outcome:
            fluid = fluid_at(config, state)
            if state == _LEARNED:
                return describe(fluid, frames_of(config, trial.seed))
            points = fluid.sample(
                trial.key(0), config.num_samples, num_steps=config.num_steps
            )
            return describe(fluid, points)

        name, label = "t{}-d{}".format(*state), "T {}, density {}".format(*state)
        return Entry(name, sample, label=label, trains=True)

    states = sorted(_NIST, key=lambda state: state != _LEARNED)[: config.num_states]
    note = (
        f"A sum over pairs, learned from {config.num_frames} samples at temperature "
        "{} and density {} without their forces, and sampled from a grid."
    ).format(*_LEARNED)
    learned = Entry(
        "linear", lambda trial: learn(config, trial), note,
        label="linear energy, one solve", trains=True,
    )  # fmt: skip
    return [*map(at, states), learned]


LJ_FLUID = Experiment(
    name="lj-fluid",
    figure="beyond the paper",
    headlines=("energy_gap", "pressure_gap", "force_error", "g_error"),
    summary="the Lennard-Jones fluid beside NIST's table, and learned from its frames",
    presets={
        "smoke": LJFluidConfig(
            num_particles=200, num_states=1, num_samples=8, num_steps=4, num_frames=8
        ),
        "quick": LJFluidConfig(),
        "paper": LJFluidConfig(num_states=6, num_samples=256, num_frames=500),
    },
    entries=entries,
    metrics=METRICS
    | {
        "energy": Metric("energy a particle, with tail correction"),
        "energy_error": Metric("its standard error", "lower"),
        "energy_gap": Metric("energy less NIST's, in joint standard errors", "zero"),
        "pressure": Metric("pressure, with tail correction"),
        "pressure_error": Metric("standard error of the pressure", "lower"),
        "pressure_gap": Metric("pressure less NIST's, in joint errors", "zero"),
        "force_error": Metric("relative error of the force on other samples", "lower"),
        "g_error": Metric("largest relative error of g(r), from where it first "
                          "exceeds 1", "lower"),
        "solve_seconds": Metric("seconds until the energy is learned", "lower", "s"),
    },
    figures=(
        curves(
            "g", lambda outcome: outcome.arrays["g"], "g(r)",
            x=lambda outcome: outcome.arrays["distance"], x_label="distance",
            caption="Radial distribution. The energy is learned from samples without "
            "their forces, and sampled from a grid.",
        ),
    ),
)  # fmt: skip
