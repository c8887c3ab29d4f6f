"""What both experiments on molecules learn from, check, and measure."""

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
from equistein.experiments.engine._experiment import Entry
from equistein.experiments.molecules._data import Reference, reference_molecules
from equistein.experiments.molecules._figures import pictured
from equistein.experiments.molecules._scores import measure
from equistein.groups import PointCloud
from equistein.models import graph_energy_for
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
        batch_size: Molecules a batch; an epoch has 64 batches.
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
    reference: Reference, symbols: Sequence[str], positions: np.ndarray, **kept: Any
) -> Outcome:
    """Return scores and pictures of molecules."""
    positions = np.asarray(positions, np.float32)
    numbers = measure(reference, symbols, positions) | kept.pop("metrics", {})
    return seed_outcome(numbers, positions, arrays=pictured(symbols, positions), **kept)


def outcome_of_fits(
    config: MoleculeConfig, key: Key, fits: Sequence[Fitted], **metrics: float
) -> Outcome:
    """Draw from the last of fits, each of which went on from the one before."""
    samples = fits[-1].sample(key, config.num_samples, progress=True)
    columns = {}
    for name in sorted({name for fit in fits for name in fit.history}):
        missing = [np.full(len(fit.history["epoch"]), np.nan) for fit in fits]
        pairs = zip(fits, missing, strict=True)
        columns[name] = np.concatenate([f.history.get(name, m) for f, m in pairs])
    columns["step"] = 1 + np.arange(len(columns.pop("epoch")))
    events = [event for fit in fits for event in fit.events]
    return outcome_of(
        config.reference, config.reference.symbols, np.asarray(samples),
        history=columns, events=events, metrics={"rollbacks": len(events)} | metrics,
    )  # fmt: skip


def floor_of_data(config: MoleculeConfig) -> Entry:
    """Return the floor: the training molecules, compared with those held out."""

    def stage(trial):
        reference = config.reference
        apart = dataclasses.replace(reference, train=reference.others)
        numbers = measure(apart, reference.symbols, reference.train)
        numbers["from_qm9"] = reference.source.startswith("QM9")
        everything = reference.everything
        arrays = pictured(reference.symbols, everything)
        return seed_outcome(numbers, np.asarray(everything, np.float32), arrays=arrays)

    return Entry(
        name=FLOOR,
        label="data",
        stage=stage,
        num_seeds=1,
        note="The floor is the training molecules, with distances to those held out; "
        "the models are compared with both together. `from_qm9` is 0 where RDKit built "
        "the molecules.",
    )
