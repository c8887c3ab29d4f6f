"""Learn the isomers of a formula, and generate new molecules."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import ClassVar

import jax.random as jr

from equistein.diffusion import NoiseEnergy
from equistein.experiments.engine._experiment import Entry, Experiment, Trial
from equistein.experiments.molecules._data import authors_molecules
from equistein.experiments.molecules._figures import FIGURES
from equistein.experiments.molecules._outcomes import (
    check,
    floor_of_data,
    graph_energy,
    MoleculeConfig,
    outcome_of,
    outcome_of_fits,
)
from equistein.models import denoising_model, DenoisingSettings
from equistein.networks import NoiseMLP
from equistein.runs import Outcome


@dataclasses.dataclass(frozen=True, kw_only=True)
class MoleculesConfig(MoleculeConfig):
    """Settings of `molecules`.

    Attributes:
        num_epochs: Epochs of `equivariant`.
        plain_epochs: Those of `plain`.
        learning_rate: Adam's, at first.
        plain_width: The number of units of the plain network, of three layers.
        stein_step: The step of the Stein force, in squares of the noise; 0 for none.
        langevin: The Langevin step, in squares of the noise; 0 for none. Both steps are
            taken up to six times the least noise.
    """

    num_epochs: int = 200
    plain_epochs: int = 60
    learning_rate: float = 3e-3
    plain_width: int = 512
    stein_step: float = 0.04
    langevin: float = 1.0

    or_zero: ClassVar[Sequence[str]] = ("stein_step", "langevin")


def entries(config: MoleculesConfig) -> list[Entry]:
    listed = [
        Entry(
            name="equivariant",
            stage=functools.partial(_learned, config, True),
            note="New molecules of an energy on an E(n)-equivariant graph network, "
            "learned by denoising score matching at all levels of noise, and sampled "
            "while the noise falls: by the reverse diffusion, with E-SVGD where the "
            "noise is small.",
            trains=True,
        ),
        Entry(
            name="plain",
            stage=functools.partial(_learned, config, False),
            note="The twin without symmetry: a multilayer perceptron of the "
            "coordinates. It sees each training molecule in one place and order only, "
            "and gives these back.",
            trains=True,
        ),
    ]
    published = authors_molecules() if config.formula == "C5H8O" else None
    if published is not None:
        listed.append(
            Entry(
                name="authors",
                stage=lambda trial: outcome_of(config.reference, *published),
                note="The 64 molecules that the authors of the paper published.",
                num_seeds=1,
            )
        )
    return [*listed, floor_of_data(config)]


def _learned(config: MoleculesConfig, equivariant: bool, trial: Trial) -> Outcome:
    data = config.data
    network_key, fit_key, sample_key = jr.split(trial.key(0), 3)
    if equivariant:
        energy = graph_energy(network_key, config)
    else:
        widths = (config.plain_width,) * 3
        network = NoiseMLP(data[0].size, widths=widths, key=network_key)
        energy = NoiseEnergy(network, data, config.noise)
    settings = DenoisingSettings(
        num_epochs=config.num_epochs if equivariant else config.plain_epochs,
        batch_size=min(config.batch_size, len(data)),
        learning_rate=config.learning_rate,
        stein_step_size=config.stein_step * config.noise**2,
        langevin_step_size=config.langevin * config.noise**2,
        sample_steps=config.sample_steps,
    )
    model = denoising_model(energy, data, settings)
    fitted = model.fit(fit_key, data, checkpoint=trial.checkpoint(), progress=True)
    return outcome_of_fits(config, sample_key, [fitted])


MOLECULES = Experiment(
    name="molecules",
    figure="section 5, figures qm9 and QM9-64",
    summary="learn the isomers of C5H8O and generate new molecules",
    presets={
        "smoke": MoleculesConfig(
            download=False, num_samples=8, num_epochs=2, plain_epochs=2, width=8,
            depth=1, plain_width=16, sample_steps=20,
        ),
        "quick": MoleculesConfig(),
        "paper": MoleculesConfig(num_seeds=3, num_epochs=2_500, plain_epochs=250),
    },
    entries=entries,
    figures=FIGURES,
    check=check,
)  # fmt: skip
