"""What both experiments on molecules learn, check, and measure."""

import collections
import dataclasses
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein._types import Key
from equistein.diffusion import NoiseEnergy
from equistein.experiments.engine._checks import AbstractConfig
from equistein.experiments.engine._experiment import Entry, Trial
from equistein.experiments.molecules._reference import Reference, reference_molecules
from equistein.groups import PointCloud
from equistein.models import DenoisingSettings, graph_energy_for
from equistein.molecules import atomic_numbers_of, atoms_of, has_rdkit
from equistein.runs import FLOOR, Outcome, seed_outcome
from equistein.training import Fitted


@dataclasses.dataclass(frozen=True, kw_only=True)
class MoleculeConfig(AbstractConfig):
    """Settings of both experiments on molecules.

    Attributes:
        formula: The formula, such as C5H8O.
        download: Whether QM9 may be fetched where it is not at hand (86 MB).
        num_samples: Molecules drawn from each model.
        batch_size: Molecules a batch, of which there may be fewer; an epoch has 64
            batches.
        width: The number of units of the graph network.
        depth: The number of its layers.
        noise: The least noise, in Angstrom.
        sample_steps: Sampler steps, over which the noise falls.
    """

    num_seeds: int = 1
    formula: str = "C5H8O"
    download: bool = True
    num_samples: int = 512
    batch_size: int = 32
    width: int = 64
    depth: int = 4
    noise: float = 0.05
    sample_steps: int = 800

    def __post_init__(self):
        super().__post_init__()
        if self.noise > 0.5:
            raise ValueError(
                f"`noise` must be at most .5 Angstrom, but got {self.noise!r}."
            )

    @property
    def reference(self) -> Reference:
        """The molecules of the formula; they are looked for or built when asked for."""
        return reference_molecules(self.formula, self.download)

    @property
    def data(self) -> Float[Array, "molecule atom 3"]:
        """The molecules that are learned from."""
        return jnp.asarray(self.reference.train, jnp.float32)

    def denoising(self, num_epochs: int, **more: Any) -> DenoisingSettings:
        """Return how energies of all levels of noise are trained and sampled.

        Samples are as warm as the density, whose distances are compared.
        """
        return DenoisingSettings(
            num_epochs=num_epochs, batch_size=min(self.batch_size, len(self.data)),
            sample_steps=self.sample_steps, sample_temperature=1.0, **more,
        )  # fmt: skip


def check(config: MoleculeConfig) -> None:
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


def graph_energy(key: Key, config: MoleculeConfig) -> NoiseEnergy:
    """Build the energies of a graph network, untrained."""
    symbols = config.reference.symbols
    return graph_energy_for(
        key, PointCloud(symbols, 3), config.data,
        atomic_numbers=atomic_numbers_of(symbols), width=config.width,
        depth=config.depth, noise=config.noise,
    )  # fmt: skip


def outcome_of(
    symbols: Sequence[str], positions: np.ndarray, metrics: dict[str, Any], **kept: Any
) -> Outcome:
    """Return molecules with their scores."""
    arrays = {"atomic_numbers": atomic_numbers_of(symbols)}
    samples = np.asarray(positions, np.float32)
    return seed_outcome(metrics, samples, arrays=arrays, **kept)


def outcome_of_fits(
    config: MoleculeConfig, key: Key, fits: Sequence[Fitted], **metrics: float
) -> Outcome:
    """Draw from the last of fits, each of which went on from the one before."""
    samples = np.asarray(fits[-1].sample(key, config.num_samples, progress=True))
    none = [np.full(len(fit.history["epoch"]), np.nan) for fit in fits]
    history = {
        name: np.concatenate(
            [fit.history.get(name, no) for fit, no in zip(fits, none, strict=True)]
        )
        for name in sorted({name for fit in fits for name in fit.history})
    }
    history["epoch"] = 1 + np.arange(len(history["epoch"]))
    events = [event for fit in fits for event in fit.events]
    symbols = config.reference.symbols
    metrics |= config.reference.measure(symbols, samples) | {"rollbacks": len(events)}
    return outcome_of(symbols, samples, metrics, history=history, events=events)


def floor_of_data(config: MoleculeConfig) -> Entry:
    """Return the floor: the training molecules, compared with those held out."""

    def stage(trial: Trial) -> Outcome:
        known = config.reference
        apart = dataclasses.replace(known, train=known.others)
        metrics = apart.measure(known.symbols, known.train)
        metrics["from_qm9"] = known.source.startswith("QM9")
        return outcome_of(known.symbols, known.everything, metrics)

    note = (
        "The floor is the training molecules, with distances to those held out; the "
        "models are compared with both together. `from_qm9` is 0 where RDKit built the "
        "molecules."
    )
    return Entry(FLOOR, stage, note, label="data", num_seeds=1)
