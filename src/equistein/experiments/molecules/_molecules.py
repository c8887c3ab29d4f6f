"""Learn the isomers of a formula, and generate new molecules."""

import collections
import dataclasses
import pathlib
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import jax.numpy as jnp
import jax.random as jr
import numpy as np

from equistein._types import Key, Particles
from equistein.energies import graph_energy_for, NoiseEnergy
from equistein.experiments._base import Experiment, seed_keys, Stage
from equistein.experiments.molecules._data import (
    authors_molecules,
    Reference,
    reference_molecules,
)
from equistein.experiments.molecules._figures import CAPTIONS, draw, NOTES, pictured
from equistein.experiments.molecules._scores import measure
from equistein.groups import PointCloud
from equistein.molecules import atomic_numbers_of, atoms_of, has_rdkit
from equistein.networks import NoiseMLP
from equistein.runs import FLOOR, Outcome, SEED
from equistein.training import DENOISING, fit, FitConfig, Fitted


@dataclasses.dataclass(frozen=True, kw_only=True)
class MoleculesConfig:
    """Settings of `molecules`.

    Attributes:
        formula: The formula, such as C5H8O.
        download: Whether QM9 may be fetched where it is not at hand (86 MB).
        num_seeds: The number of seeds, counted up from the run's seed.
        num_samples: Molecules drawn from each model.
        num_epochs: Epochs of 64 batches, of `equivariant`.
        plain_epochs: Those of `plain`.
        batch_size: Molecules a batch.
        learning_rate: Adam's, at first.
        width: The number of units of the graph network.
        depth: The number of its layers.
        plain_width: The number of units of the plain network, of three layers.
        noise: The least noise, in Angstrom.
        stein_step: The step of the Stein force, in squares of the noise.
        langevin: The Langevin step, in squares of the noise. Both steps are taken
            up to six times the least noise.
        sample_steps: Sampler steps, over which the noise falls.
    """

    formula: str = "C5H8O"
    download: bool = True
    num_seeds: int = 1
    num_samples: int = 512
    num_epochs: int = 200
    plain_epochs: int = 60
    batch_size: int = 32
    learning_rate: float = 3e-3
    width: int = 64
    depth: int = 4
    plain_width: int = 512
    noise: float = 0.05
    stein_step: float = 0.04
    langevin: float = 1.0
    sample_steps: int = 800


def fit_config(config: MoleculesConfig, num_epochs: int, num_data: int) -> FitConfig:
    """Return the settings of a fit by denoising score matching."""
    return dataclasses.replace(
        DENOISING,
        num_epochs=num_epochs,
        batch_size=min(config.batch_size, num_data),
        learning_rate=config.learning_rate,
        stein_step=config.stein_step * config.noise**2,
        langevin=config.langevin * config.noise**2,
        sample_steps=config.sample_steps,
    )


@runtime_checkable
class NetworkConfig(Protocol):
    """The formula, and the settings of the graph network."""

    @property
    def formula(self) -> str: ...
    @property
    def width(self) -> int: ...
    @property
    def depth(self) -> int: ...
    @property
    def noise(self) -> float: ...


def graph_energy(key: Key, config: NetworkConfig, reference: Reference) -> NoiseEnergy:
    """Build the energy of a graph network, untrained."""
    data = jnp.asarray(reference.train, jnp.float32)
    return graph_energy_for(
        key, PointCloud(reference.symbols, 3), data,
        atomic_numbers=atomic_numbers_of(reference.symbols), width=config.width,
        depth=config.depth, noise=config.noise,
    )  # fmt: skip


def outcome_of(
    reference: Reference,
    symbols: Sequence[str],
    positions: np.ndarray,
    history: dict[str, np.ndarray] | None = None,
) -> Outcome:
    """Return scores and pictures of molecules."""
    numbers = measure(reference, symbols, positions)
    return Outcome(
        metrics={name: np.array([value]) for name, value in numbers.items()},
        samples=np.asarray(positions, np.float32),
        history=history or {},
        arrays=pictured(symbols, positions),
    )


def outcome_of_fit(
    reference: Reference, samples: Particles, fits: Sequence[Fitted]
) -> Outcome:
    """Return scores and pictures of samples, with the history of what they are from.

    Args:
        reference: What to compare with.
        samples: Samples of the last fit.
        fits: The fits, each of which went on from the one before.
    """
    symbols, names = reference.symbols, sorted({n for f in fits for n in f.history})
    columns = {
        name: np.concatenate(
            [
                f.history.get(name, np.full(len(f.history["epoch"]), np.nan))
                for f in fits
            ]
        )[None]
        for name in names
    }
    columns["step"] = 1 + np.arange(columns.pop("epoch").shape[1])[None]
    outcome = outcome_of(reference, symbols, np.asarray(samples), columns)
    events = [event for fitted in fits for event in fitted.events]
    rollbacks = {"rollbacks": np.array([float(len(events))])}
    return dataclasses.replace(
        outcome, metrics=outcome.metrics | rollbacks, events=events
    )


def data_outcome(reference: Reference) -> Outcome:
    """Return the floor: the training molecules, compared with those held out."""
    apart = dataclasses.replace(reference, train=reference.others)
    numbers = measure(apart, reference.symbols, reference.train)
    numbers["from_qm9"] = float(reference.source.startswith("QM9"))
    return Outcome(
        metrics={name: np.array([value]) for name, value in numbers.items()},
        samples=np.asarray(reference.everything, np.float32),
        arrays=pictured(reference.symbols, reference.everything),
    )


def check(config: NetworkConfig) -> None:
    """Raise `ValueError` for a formula or tools that do not do."""
    if not has_rdkit():
        raise ValueError(
            "This experiment needs RDKit, which judges and draws molecules: "
            "pip install 'equistein[molecules]'."
        )
    counts = collections.Counter(atoms_of(config.formula))
    if set(counts) - set("HCNOF") or counts["C"] < 2 or not counts["O"]:
        raise ValueError(
            "`formula` must be of H, C, N, O and F, with two C and one O at least, "
            f"whose distances are compared, but got {config.formula!r}."
        )
    if not config.noise <= 0.5:
        raise ValueError(
            f"`noise` must be at most .5 Angstrom, but got {config.noise!r}."
        )


def stages(
    config: MoleculesConfig, seed: int, kept: pathlib.Path | None = None
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
            if name == "equivariant":
                num_epochs = config.num_epochs
                energy = graph_energy(network_key, config, reference())
            else:
                num_epochs = config.plain_epochs
                widths = (config.plain_width,) * 3
                network = NoiseMLP(data[0].size, widths=widths, key=network_key)
                energy = NoiseEnergy(network, data, config.noise)
            fitted = fit(
                fit_key, energy, data,
                fit_config(config, num_epochs, len(data)), progress=True,
                checkpoint=kept and kept / f"{stage_name}.eqx",
            )  # fmt: skip
            samples = fitted.sample(sample_key, config.num_samples, progress=True)
            return outcome_of_fit(reference(), samples, [fitted])

        return stage

    def authors() -> Outcome:
        found = authors_molecules()
        assert found is not None
        return outcome_of(reference(), *found)

    seeds = range(config.num_seeds)
    parts = {
        f"{name}{SEED}{index}": learned(name, index)
        for name in ("equivariant", "plain")
        for index in seeds
    }
    if config.formula == "C5H8O" and authors_molecules() is not None:
        parts["authors"] = authors
    return parts | {FLOOR: lambda: data_outcome(reference())}


MOLECULES = Experiment(
    name="molecules",
    figure="section 5, figures qm9 and QM9-64",
    summary="learn the isomers of C5H8O and generate new molecules",
    presets={
        "smoke": MoleculesConfig(
            download=False,
            num_samples=8,
            num_epochs=2,
            plain_epochs=2,
            width=8,
            depth=1,
            plain_width=16,
            sample_steps=20,
        ),
        "quick": MoleculesConfig(),
        "paper": MoleculesConfig(num_seeds=3, num_epochs=2_500, plain_epochs=250),
    },
    stages=stages,
    draw=draw,
    trains=True,
    notes=NOTES,
    captions=CAPTIONS,
)
