"""How to learn molecules: denoising, contrastive divergence, or one after the other."""

import dataclasses
import pathlib
import time
from collections.abc import Mapping

import jax.numpy as jnp
import jax.random as jr
import numpy as np

from equistein.energies import AbstractEnergy, LeastNoise
from equistein.experiments._base import Experiment, seed_keys, Stage
from equistein.experiments.molecules._data import Reference, reference_molecules
from equistein.experiments.molecules._molecules import (
    check,
    data_outcome,
    graph_energy,
    outcome_of_fit,
)
from equistein.plotting import boxes
from equistein.runs import FLOOR, Outcome, SEED
from equistein.training import DENOISING, fit, FitConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class MoleculesTrainingConfig:
    """Settings of `molecules-training`.

    The numbers of epochs, each of 64 batches, are set so that each way takes the same
    time on two processor cores. It is among the metrics, with compilation; of a resumed
    run it is not known.

    Attributes:
        formula: The formula, such as C5H8O.
        download: Whether QM9 may be fetched where it is not at hand (86 MB).
        num_seeds: The number of seeds, counted up from the run's seed.
        num_samples: Molecules drawn from each model.
        denoising_epochs: Epochs of `denoising`.
        contrastive_epochs: Those of `contrastive` and `annealed`.
        refined_epochs: Those of `refined`, by denoising and by contrastive divergence.
        num_particles: The negatives of contrastive divergence.
        num_steps: Sampler steps a batch.
        batch_size: Molecules a batch.
        width: The number of units of the graph network.
        depth: The number of its layers.
        noise: The least noise, in Angstrom.
        sample_steps: Sampler steps for new molecules.
    """

    formula: str = "C5H8O"
    download: bool = True
    num_seeds: int = 1
    num_samples: int = 128
    denoising_epochs: int = 48
    contrastive_epochs: int = 10
    refined_epochs: tuple[int, int] = (36, 3)
    num_particles: int = 32
    num_steps: int = 10
    batch_size: int = 32
    width: int = 64
    depth: int = 4
    noise: float = 0.05
    sample_steps: int = 800


def phases(
    config: MoleculesTrainingConfig, name: str, num_data: int
) -> list[FitConfig]:
    """Return the fits that one way of training is made of."""
    denoising = dataclasses.replace(
        DENOISING,
        num_epochs=config.denoising_epochs,
        batch_size=min(config.batch_size, num_data),
        sample_steps=config.sample_steps,
    )
    contrastive = dataclasses.replace(
        denoising,
        num_epochs=config.contrastive_epochs,
        contrastive=1.0,
        score_matching=0.0,
        num_particles=config.num_particles,
        num_steps=config.num_steps,
        reset_probability=0.02,
        regularization=1e-4,
        learning_rate=1e-3,
    )
    # The same steps and noise as at the last level, with fresh noise in each step.
    finest = config.noise**2
    persistent = dataclasses.replace(
        contrastive,
        langevin=0.25 * finest,
        stein_step=0.01 * finest,
        score_clip=20 / config.noise,
        data_noise=config.noise,
    )
    first, second = config.refined_epochs
    return {
        "denoising": [denoising],
        "contrastive": [persistent],
        "annealed": [contrastive],
        "refined": [
            dataclasses.replace(denoising, num_epochs=first),
            dataclasses.replace(contrastive, num_epochs=second, learning_rate=1e-4),
        ],
    }[name]


def stages(
    config: MoleculesTrainingConfig, seed: int, kept: pathlib.Path | None = None
) -> dict[str, Stage]:
    check(config)

    def reference() -> Reference:
        return reference_molecules(config.formula, config.download)

    def learned(name: str, index: int) -> Stage:
        stage_name = f"{name}{SEED}{index}"

        def stage() -> Outcome:
            data = jnp.asarray(reference().train, jnp.float32)
            key = seed_keys(seed, config.num_seeds, 0)[index]
            network_key, fit_key, sample_key = jr.split(key, 3)
            levels = graph_energy(network_key, config, reference())
            energy: AbstractEnergy = levels
            if name == "contrastive":
                energy = LeastNoise(levels)

            def learn(energy: AbstractEnergy, number: int, settings: FitConfig):
                return fit(
                    jr.fold_in(fit_key, number), energy, data, settings,
                    checkpoint=kept and kept / f"{stage_name}.{number}.eqx",
                    progress=True,
                )  # fmt: skip

            resumed = kept is not None and (kept / f"{stage_name}.0.eqx").exists()
            begun = time.perf_counter()
            first, *later = phases(config, name, len(data))
            fits = [learn(energy, 0, first)]
            for number, settings in enumerate(later, start=1):
                fits.append(learn(fits[-1].energy, number, settings))
            seconds = np.nan if resumed else time.perf_counter() - begun
            samples = fits[-1].sample(sample_key, config.num_samples, progress=True)
            outcome = outcome_of_fit(reference(), samples, fits)
            took = {"seconds": np.array([seconds])}
            return dataclasses.replace(outcome, metrics=outcome.metrics | took)

        return stage

    parts = {
        f"{name}{SEED}{index}": learned(name, index)
        for name in ("denoising", "contrastive", "annealed", "refined")
        for index in range(config.num_seeds)
    }
    return parts | {FLOOR: lambda: data_outcome(reference())}


def draw(config: MoleculesTrainingConfig, outcomes: Mapping[str, Outcome]) -> dict:
    """Draw each score, a point a seed."""
    del config
    runs = {name: out for name, out in outcomes.items() if name != FLOOR}
    labels = {
        "atom_stability": "share of stable atoms",
        "molecule_stability": "share of stable molecules",
        "validity": "share of valid molecules",
        "w1_c_c": "Wasserstein-1 of the C–C distances / Å",
        "w1_c_o": "Wasserstein-1 of the C–O distances / Å",
    }
    return {
        name.replace("_", "-"): boxes(
            {run: out.metrics[name] for run, out in runs.items()}, label
        )
        for name, label in labels.items()
    }


MOLECULES_TRAINING = Experiment(
    name="molecules-training",
    figure="section 5 and appendix E.2",
    summary="denoising, contrastive divergence, or both: in the same time",
    presets={
        "smoke": MoleculesTrainingConfig(
            download=False,
            num_samples=8,
            denoising_epochs=2,
            contrastive_epochs=1,
            refined_epochs=(1, 1),
            num_particles=4,
            num_steps=2,
            width=8,
            depth=1,
            sample_steps=20,
        ),
        "quick": MoleculesTrainingConfig(),
        "paper": MoleculesTrainingConfig(
            num_seeds=3,
            num_samples=512,
            denoising_epochs=2_500,
            contrastive_epochs=500,
            refined_epochs=(2_000, 100),
        ),
    },
    stages=stages,
    draw=draw,
    trains=True,
    notes={
        "denoising": "Score matching at all levels of noise; new ones are annealed "
        "from noise.",
        "contrastive": "As in the paper: one energy, persistent particles moved by "
        "E-SVGD; new molecules start in a box around the data.",
        "annealed": "Contrastive divergence at all levels of noise, its particles "
        "annealed from the largest to the least, again and again.",
        "refined": "`denoising` for most of the time, then `annealed` from "
        "its weights.",
        "floor": "The training molecules, with distances to those held out.",
    },
    captions={
        "w1-c-c": "Distance of the law of C–C distances from that of all molecules.",
        "w1-c-o": "Distance of the law of C–O distances from that of all molecules.",
    },
)
