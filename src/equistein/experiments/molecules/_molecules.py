"""Learn the isomers of a formula, and generate new molecules."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import ClassVar

import jax.random as jr

from equistein._types import Key
from equistein.diffusion import NoiseEnergy
from equistein.experiments.engine._augmented import augmented
from equistein.experiments.engine._experiment import Entry, Experiment, Trial
from equistein.experiments.molecules._figures import FIGURES
from equistein.experiments.molecules._learning import (
    check,
    floor_of_data,
    graph_energy,
    MoleculeConfig,
    outcome_of,
    outcome_of_fits,
)
from equistein.experiments.molecules._reference import authors_molecules
from equistein.groups import PointCloud
from equistein.models import denoising_model
from equistein.networks import NoiseMLP
from equistein.runs import Outcome


@dataclasses.dataclass(frozen=True, kw_only=True)
class MoleculesConfig(MoleculeConfig):
    """Settings of `molecules`.

    Attributes:
        num_epochs: Epochs of `equivariant`.
        plain_epochs: Those of `plain` and `augmented`, which take as much time.
        learning_rate: Adam's, at first.
        plain_width: The number of units of their networks, of three layers, which make
            as many parameters.
        copies: Copies of each molecule that `augmented` learns from.
        stein_step: The step of the Stein force, in squares of the noise; 0 for none.
        langevin: The Langevin step, in squares of the noise; 0 for none. Both steps are
            taken up to six times the least noise.
    """

    num_epochs: int = 200
    plain_epochs: int = 4_000
    learning_rate: float = 3e-3
    plain_width: int = 216
    copies: int = 1_000
    stein_step: float = 0.04
    langevin: float = 1.0

    or_zero: ClassVar[Sequence[str]] = ("stein_step", "langevin")


def entries(config: MoleculesConfig) -> list[Entry]:
    def learned(
        name: str,
        energy_for: Callable[[Key, MoleculesConfig], NoiseEnergy],
        num_epochs: int,
        note: str,
        copies: int = 1,
    ) -> Entry:
        def stage(trial: Trial) -> Outcome:
            network_key, fit_key, sample_key = jr.split(trial.key(0), 3)
            energy, data = energy_for(network_key, config), config.data
            if copies > 1:
                group = PointCloud(config.reference.symbols, 3)
                data = augmented(trial.key(3), group, data, copies)
            settings = config.denoising(
                num_epochs, learning_rate=config.learning_rate,
                stein_step_size=config.stein_step * config.noise**2,
                langevin_step_size=config.langevin * config.noise**2,
            )  # fmt: skip
            model, path = denoising_model(energy, data, settings), trial.checkpoint()
            fitted = model.fit(fit_key, data, checkpoint=path, progress=True)
            return outcome_of_fits(config, sample_key, [fitted])

        return Entry(name, stage, note, trains=True)

    listed = [
        learned(
            "equivariant",
            graph_energy,
            config.num_epochs,
            "New molecules of an energy on an E(n)-equivariant graph network, learned "
            "by denoising score matching at all levels of noise, and sampled while the "
            "noise falls: by the reverse diffusion, with E-SVGD where the noise is "
            "small.",
        ),
        learned(
            "plain",
            _plain,
            config.plain_epochs,
            "The twin without symmetry: a multilayer perceptron of the coordinates. It "
            "sees each training molecule in one place and order only, and gives these "
            "back.",
        ),
        learned(
            "augmented",
            _plain,
            config.plain_epochs,
            "The same twin, which learns from copies of each molecule, turned and with "
            "its like atoms swapped at random.",
            config.copies,
        ),
    ]
    published = authors_molecules() if config.formula == "C5H8O" else None
    if published is not None:
        note = "The 64 molecules that the authors of the paper published."

        def authors(trial: Trial) -> Outcome:
            return outcome_of(*published, config.reference.measure(*published))

        listed.append(Entry("authors", authors, note, num_seeds=1))
    return [*listed, floor_of_data(config)]


def _plain(key: Key, config: MoleculesConfig) -> NoiseEnergy:
    """Build the energies of a perceptron of the coordinates, untrained."""
    widths = (config.plain_width,) * 3
    network = NoiseMLP(config.data[0].size, widths=widths, key=key)
    return NoiseEnergy(network, config.data, config.noise)


MOLECULES = Experiment(
    name="molecules",
    figure="section 5, figures 5 and 13",
    headlines=("validity", "molecule_stability", "num_isomers", "w1_c_c", "w1_c_o"),
    summary="learn the isomers of C5H8O and generate new molecules",
    presets={
        "smoke": MoleculesConfig(
            download=False, num_samples=8, num_epochs=2, plain_epochs=2, width=8,
            depth=1, plain_width=16, sample_steps=20, copies=2,
        ),
        "quick": MoleculesConfig(),
        "paper": MoleculesConfig(num_seeds=3, num_epochs=2_500, plain_epochs=50_000),
    },
    entries=entries,
    figures=FIGURES,
    check=check,
)  # fmt: skip
