"""Learn the isomers of a formula, and generate new molecules."""

import collections
import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein.groups import PointCloud
from equistein.models import DenoisingSettings
from equistein.molecules import (
    atomic_numbers_of,
    atoms_of,
    infer_bonds,
    symbols_of,
)
from equistein.plotting import molecule_viewer, molecules
from equistein.runs import FLOOR, Outcome, seed_outcome
from experiments._engine import (
    AbstractConfig,
    Entry,
    Experiment,
    Figure,
    Shown,
    Trial,
)
from experiments._figures import curves, histograms
from experiments._molecule_reference import (
    authors_molecules,
    GEOMETRY,
    Reference,
    reference_molecules,
)
from experiments._systems import fit_as_set, fit_coordinates

_BATCH = 32  # molecules, at most


@dataclasses.dataclass(frozen=True, kw_only=True)
class MoleculesConfig(AbstractConfig):
    """Settings of `molecules`.

    Attributes:
        formula: The formula, such as C5H8O.
        download: Whether QM9 may be fetched where it is not available (86 MB).
        num_samples: Molecules drawn from each model.
        width: The number of units of the graph network.
        depth: The number of its layers.
        noise: The least noise, in Angstrom.
        sample_steps: Sampler steps, over which the noise falls.
        num_epochs: Epochs of `equivariant`, of 64 batches each.
        plain_epochs: Those of `plain` and `augmented`, which take as much time.
        plain_width: The number of units of their networks, of three layers, which make
            as many parameters.
        copies: Copies of each molecule that `augmented` learns from.
        stein_step: The step of the Stein force, in squares of the noise; 0 for none.
            It and Langevin steps are taken up to six times the least noise.
    """

    num_seeds: int = 1
    formula: str = "C5H8O"
    download: bool = True
    num_samples: int = 512
    width: int = 64
    depth: int = 4
    noise: float = 0.05
    sample_steps: int = 800
    num_epochs: int = 200
    plain_epochs: int = 4_000
    plain_width: int = 216
    copies: int = 1_000
    stein_step: float = 0.04

    or_zero: ClassVar[Sequence[str]] = ("stein_step",)

    @property
    def reference(self) -> Reference:
        """The molecules of the formula, read when they are first asked for."""
        return reference_molecules(self.formula, self.download)

    @property
    def data(self) -> Float[Array, "molecule atom 3"]:
        """The molecules that are learned from."""
        return jnp.asarray(self.reference.train, jnp.float32)

    def denoising(self, num_epochs: int) -> DenoisingSettings:
        """Return how energies of all noise levels are trained and sampled.

        Samples are as warm as the density, whose distances are compared.
        """
        return DenoisingSettings(
            num_epochs=num_epochs, batch_size=min(_BATCH, len(self.data)),
            sample_steps=self.sample_steps, sample_temperature=1.0,
            learning_rate=3e-3, sigma_min=self.noise, width=self.width,
            depth=self.depth,
            stein_step_size=self.stein_step * self.noise**2,
            langevin_step_size=self.noise**2,
        )  # fmt: skip


def check(config: MoleculesConfig) -> None:
    """Raise `ValueError` for a formula that is invalid."""
    counts = collections.Counter(atoms_of(config.formula))
    if set(counts) - set("HCNOF") or counts["C"] < 2 or not counts["O"]:
        raise ValueError(
            "`formula` must be of H, C, N, O and F, with two C and one O at least, "
            f"whose distances are compared, but got {config.formula!r}."
        )


def _learned(config: MoleculesConfig, copies: int, trial: Trial) -> Outcome:
    """Fit an energy by denoising, and measure its samples.

    With no copies it is that of a graph network, else of a perceptron of coordinates.
    """
    data, known = config.data, config.reference
    group = PointCloud(known.symbols, 3)
    if copies:
        fitted, key = fit_coordinates(
            config.denoising(config.plain_epochs), trial, group, data, copies,
            config.plain_width,
        )  # fmt: skip
    else:
        fitted, key = fit_as_set(
            config.denoising(config.num_epochs), trial, group, data,
            atomic_numbers=atomic_numbers_of(known.symbols),
        )  # fmt: skip
    samples = np.asarray(fitted.sample(key, config.num_samples, progress=True))
    metrics = known.measure(known.symbols, samples)
    metrics["rollbacks"] = len(fitted.events)
    kept = {"history": fitted.history, "events": fitted.events}
    return _outcome(known.symbols, samples, metrics, **kept)


def entries(config: MoleculesConfig) -> list[Entry]:
    """Return the models and the floor."""

    def floor(trial: Trial) -> Outcome:
        known = config.reference
        apart = dataclasses.replace(known, train=known.others)
        metrics = apart.measure(known.symbols, known.train)
        return _outcome(known.symbols, known.everything, metrics)

    models = (
        (
            "equivariant", 0,
            "New molecules of an energy on an E(n)-equivariant graph network, learned "
            "by denoising score matching at all noise levels, and sampled while the "
            "noise falls: by the reverse diffusion, with E-SVGD where the noise is "
            "small.",
        ),
        (
            "plain", 1,
            "The twin without symmetry: a multilayer perceptron of the coordinates. It "
            "sees each training molecule in one place and order only, and gives these "
            "back.",
        ),
        (
            "augmented", config.copies,
            "The same twin, which learns from copies of each molecule, turned and with "
            "its like atoms swapped at random.",
        ),
    )  # fmt: skip
    listed = [
        Entry(name, functools.partial(_learned, config, copies), note, trains=True)
        for name, copies, note in models
    ]
    published = authors_molecules() if config.formula == "C5H8O" else None
    if published is not None:
        note = "The 64 molecules that the authors of the paper published."

        def authors(trial: Trial) -> Outcome:
            return _outcome(*published, config.reference.measure(*published))

        listed.append(Entry("authors", authors, note, num_seeds=1))
    note = (
        "The floor is the training molecules, with distances to those held out; the "
        "models are compared with both together."
    )
    return [*listed, Entry(FLOOR, floor, note, label="data", num_seeds=1)]


def _outcome(
    symbols: Sequence[str], positions: np.ndarray, metrics: dict[str, Any], **kept: Any
) -> Outcome:
    """Return molecules with their scores."""
    arrays = {"atomic_numbers": atomic_numbers_of(symbols)}
    samples = np.asarray(positions, np.float32)
    return seed_outcome(metrics, samples, arrays=arrays, **kept)


_SHOWN = 64
_TURNED = 12  # molecules to turn with the mouse


def _molecules(outcome: Outcome) -> tuple[tuple[str, ...], np.ndarray]:
    """Return elements and positions."""
    numbers = outcome.arrays["atomic_numbers"][: outcome.samples.shape[1]]
    return symbols_of(numbers), np.asarray(outcome.samples, np.float64)


def _pictures(name: str, model: str, draw: Any, num: int, caption: str) -> Figure:
    """Return a picture of the first molecules of a model, with inferred bonds."""

    def function(config: Any, shown: Shown) -> Any | None:
        found = [outcome for entry, outcome in shown if entry.name == model]
        if not found:
            return None
        symbols, positions = _molecules(found[0])
        first = positions[:num] - positions[:num].mean(axis=1, keepdims=True)
        return draw(symbols, first, np.stack([infer_bonds(symbols, m) for m in first]))

    return Figure(name, function, caption)


def _histogram(name: str, measured: str, label: str, limits: tuple, about: str):
    """Return histograms of distances or angles of all molecules."""
    function = GEOMETRY[measured]
    return histograms(
        name, lambda outcome: function(*_molecules(outcome)), label, limits=limits,
        caption=about,
    )  # fmt: skip


_DISTANCE = (1.0, 6.0), "Distances between all pairs of two elements, bonded or not."
_ANGLE = (40.0, 180.0), "Angles between bonds, in degrees."

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
    figures=(
        _pictures(
            "molecules",
            "equivariant",
            molecules,
            _SHOWN,
            "New molecules of the equivariant model, the first 64, with the bonds that "
            "the paper's three steps infer.",
        ),
        _pictures(
            "turned",
            "equivariant",
            molecule_viewer,
            _TURNED,
            "New molecules, to turn with the mouse.",
        ),
        _pictures(
            "authors",
            "authors",
            molecules,
            _SHOWN,
            "The molecules that the authors of the paper published, with inferred "
            "bonds.",
        ),
        _histogram("distances_c_c", "c_c", "C–C distance / Å", *_DISTANCE),
        _histogram("distances_c_o", "c_o", "C–O distance / Å", *_DISTANCE),
        _histogram("angles_c_c_c", "angle_c_c_c", "C–C–C angle / degrees", *_ANGLE),
        _histogram("angles_c_c_o", "angle_c_c_o", "C–C–O angle / degrees", *_ANGLE),
        curves(
            "training", "denoising_loss", "denoising loss", x_label="epoch", log_y=True
        ),
    ),
    needs={"rdkit": "molecules"},
    check=check,
)  # fmt: skip
