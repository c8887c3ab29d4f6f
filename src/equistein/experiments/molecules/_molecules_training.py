"""How to learn molecules: denoising, contrastive divergence, or one after the other."""

import dataclasses
import functools
import time
from collections.abc import Callable, Sequence

import jax.random as jr
import numpy as np

from equistein.diffusion import DiffusionContrastiveDivergence, NoiseEnergy
from equistein.experiments.engine._experiment import Entry, Experiment, Trial
from equistein.experiments.engine._figures import Boxes
from equistein.experiments.molecules._figures import pictures_of
from equistein.experiments.molecules._learning import (
    check,
    floor_of_data,
    graph_energy,
    MoleculeConfig,
    outcome_of_fits,
)
from equistein.models import (
    contrastive_model,
    ContrastiveSettings,
    denoising_model,
    diffusion_steps,
    Model,
)
from equistein.plotting import molecules
from equistein.runs import Outcome


@dataclasses.dataclass(frozen=True, kw_only=True)
class MoleculesTrainingConfig(MoleculeConfig):
    """Settings of `molecules-training`.

    The numbers of epochs, each of 64 batches, are set so that each way takes the same
    time on two processor cores. It is among the metrics, with compilation; of a resumed
    run it is not known.

    Attributes:
        denoising_epochs: Epochs of `denoising`.
        contrastive_epochs: Those of `contrastive` and `annealed`.
        refined_epochs: Those of `refined`, by denoising and by contrastive divergence.
        num_particles: The negatives of contrastive divergence.
        num_steps: Sampler steps a batch.
    """

    num_samples: int = 128
    denoising_epochs: int = 48
    contrastive_epochs: int = 10
    refined_epochs: tuple[int, int] = (36, 3)
    num_particles: int = 32
    num_steps: int = 10


Phase = Callable[[NoiseEnergy], Model]
"""What makes the model of a fit from the energy it goes on with."""


def denoising(
    config: MoleculesTrainingConfig, num_epochs: int, energy: NoiseEnergy
) -> Model:
    """Return a fit by score matching at all levels of noise."""
    return denoising_model(energy, config.data, config.denoising(num_epochs))


def annealed(
    config: MoleculesTrainingConfig, num_epochs: int, rate: float, energy: NoiseEnergy
) -> Model:
    """Return a fit by contrastive divergence at all levels of noise."""
    settings = config.denoising(num_epochs, learning_rate=rate)
    objective = DiffusionContrastiveDivergence(
        diffusion_steps(energy, config.data.shape[1:], settings),
        num_particles=config.num_particles, num_steps=config.num_steps,
        regularization=1e-4,
    )  # fmt: skip
    model = denoising_model(energy, config.data, settings)
    return dataclasses.replace(model, objective=objective)


def persistent(
    config: MoleculesTrainingConfig, num_epochs: int, energy: NoiseEnergy
) -> Model:
    """Return a fit of the energy at the least noise, with persistent particles.

    Steps and clip are those of the last level of reverse diffusion.
    """
    finest, alike = config.noise**2, config.denoising(num_epochs)
    settings = ContrastiveSettings(
        num_epochs=num_epochs, epoch_batches=alike.epoch_batches,
        batch_size=alike.batch_size, learning_rate=1e-3, warm_up=alike.warm_up,
        ema=alike.ema, num_particles=config.num_particles,
        num_steps=config.num_steps, reset_probability=0.02, regularization=1e-4,
        langevin_step_size=0.25 * finest, stein_step_size=0.01 * finest,
        score_clip=20 / config.noise, data_noise=config.noise,
        sample_steps=alike.sample_steps, sample_at_once=alike.sample_at_once,
    )  # fmt: skip
    return contrastive_model(energy, config.data, None, settings)


def entries(config: MoleculesTrainingConfig) -> list[Entry]:
    first, second = config.refined_epochs
    some, fit_of = config.contrastive_epochs, functools.partial

    def entry(name: str, note: str, *phases: Phase) -> Entry:
        stage = functools.partial(_learned, config, phases)
        return Entry(name, stage, note, trains=True)

    return [
        entry(
            "denoising",
            "Score matching at all levels of noise; new molecules come by reverse "
            "diffusion.",
            fit_of(denoising, config, config.denoising_epochs),
        ),
        entry(
            "contrastive",
            "As in the paper: one energy, persistent particles moved by E-SVGD; new "
            "molecules start in a box around the data.",
            fit_of(persistent, config, some),
        ),
        entry(
            "annealed",
            "Contrastive divergence at all levels of noise, whose particles follow the "
            "reverse diffusion from the largest to the least, again and again.",
            fit_of(annealed, config, some, 1e-3),
        ),
        entry(
            "refined",
            "`denoising` for most of the time, then `annealed` from its weights.",
            fit_of(denoising, config, first),
            fit_of(annealed, config, second, 1e-4),
        ),
        floor_of_data(config),
    ]


def _learned(
    config: MoleculesTrainingConfig, phases: Sequence[Phase], trial: Trial
) -> Outcome:
    network_key, fit_key, sample_key = jr.split(trial.key(0), 3)
    begun_before = trial.checkpoint(".0")
    resumed = begun_before is not None and begun_before.exists()
    energy, fits = graph_energy(network_key, config), []
    begun = time.perf_counter()
    for number, phase in enumerate(phases):
        fits.append(
            phase(energy).fit(
                jr.fold_in(fit_key, number), config.data, progress=True,
                checkpoint=trial.checkpoint(f".{number}"),
            )
        )  # fmt: skip
        energy = fits[-1].energy
    seconds = np.nan if resumed else time.perf_counter() - begun
    return outcome_of_fits(config, sample_key, fits, seconds=seconds)


MOLECULES_TRAINING = Experiment(
    name="molecules-training",
    figure="section 5 and appendix E.2",
    headlines=("validity", "molecule_stability", "w1_c_c", "w1_c_o"),
    summary="denoising, contrastive divergence, or both: in the same time",
    presets={
        "smoke": MoleculesTrainingConfig(
            download=False, num_samples=8, denoising_epochs=2, contrastive_epochs=1,
            refined_epochs=(1, 1), num_particles=4, num_steps=2, width=8, depth=1,
            sample_steps=20,
        ),
        "quick": MoleculesTrainingConfig(),
        "paper": MoleculesTrainingConfig(
            num_seeds=3, num_samples=512, denoising_epochs=2_500,
            contrastive_epochs=500, refined_epochs=(2_000, 100),
        ),
    },
    entries=entries,
    figures=(
        *(pictures_of(
            f"molecules-{name}", name, molecules,
            f"New molecules by `{name}`, the first 64, with inferred bonds.",
        ) for name in ("denoising", "contrastive")),
        *(Boxes(name.replace("_", "-"), name, label)
        for name, label in (
            ("atom_stability", "fraction of stable atoms"),
            ("molecule_stability", "fraction of stable molecules"),
            ("validity", "fraction of valid molecules"),
            ("w1_c_c", "Wasserstein-1 distance of the C–C distances / Å"),
            ("w1_c_o", "Wasserstein-1 distance of the C–O distances / Å"),
        )),
    ),
    check=check,
)  # fmt: skip
