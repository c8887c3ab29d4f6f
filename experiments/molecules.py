"""Learn the isomers of a formula, and generate new molecules."""

import collections
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein.diffusion import NoiseEnergy
from equistein.groups import PointCloud
from equistein.models import (
    denoising_model,
    DenoisingSettings,
    for_data,
    shape_panels,
    shapes_of,
)
from equistein.molecules import (
    atomic_numbers_of,
    atoms_of,
    drawings,
    from_bonds,
    has_rdkit,
    infer_bonds,
    perceive,
    symbols_of,
)
from equistein.networks import NoiseMLP
from equistein.plotting import molecule_viewer, molecules, picture, side_by_side
from equistein.runs import FLOOR, Metric, Outcome, seed_outcome
from equistein.training import Fitted
from experiments._engine import AbstractConfig, augmented, Entry, Experiment, Trial
from experiments._figures import Curves, Histograms, Own, Shown
from experiments._molecule_reference import (
    authors_molecules,
    GEOMETRY,
    Reference,
    reference_molecules,
)
from experiments._types import Key


@dataclasses.dataclass(frozen=True, kw_only=True)
class MoleculeConfig(AbstractConfig):
    """Settings of both experiments on molecules.

    Attributes:
        formula: The formula, such as C5H8O.
        download: Whether QM9 may be fetched where it is not available (86 MB).
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
        """Return how energies of all noise levels are trained and sampled.

        Samples are as warm as the density, whose distances are compared.
        """
        return DenoisingSettings(
            num_epochs=num_epochs, batch_size=min(self.batch_size, len(self.data)),
            sample_steps=self.sample_steps, sample_temperature=1.0, **more,
        )  # fmt: skip


def check(config: MoleculeConfig) -> None:
    """Raise `ValueError` for a formula or tools that are invalid."""
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
    settings = DenoisingSettings(
        width=config.width, depth=config.depth, sigma_min=config.noise
    )
    model = for_data(
        key, PointCloud(symbols, 3), config.data, settings=settings,
        atomic_numbers=atomic_numbers_of(symbols),
    )  # fmt: skip
    assert isinstance(model.energy, NoiseEnergy)
    return model.energy


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


_SHOWN = 64
_TURNED = 12  # molecules to turn with the mouse


def _molecules(outcome: Outcome) -> tuple[tuple[str, ...], np.ndarray]:
    """Return elements and positions."""
    numbers = outcome.arrays["atomic_numbers"][: outcome.samples.shape[1]]
    return symbols_of(numbers), np.asarray(outcome.samples, np.float64)


def pictures_of(name: str, model: str, draw: Any, caption: str) -> Own:
    """Return a picture of the first molecules of a model, with inferred bonds."""

    def function(config: Any, shown: Shown) -> Any | None:
        found = [outcome for entry, outcome in shown if entry.name == model]
        if not found:
            return None
        symbols, positions = _molecules(found[0])
        first = positions[:_SHOWN] - positions[:_SHOWN].mean(axis=1, keepdims=True)
        return draw(symbols, first, np.stack([infer_bonds(symbols, m) for m in first]))

    return Own(name, function, caption=caption)


def _turned(symbols: Sequence[str], shown: np.ndarray, orders: np.ndarray) -> Any:
    return molecule_viewer(symbols, shown[:_TURNED], orders[:_TURNED])


def _formulas(symbols: Sequence[str], shown: np.ndarray, orders: np.ndarray) -> Any:
    mols, captions = [], []
    for positions, bonds in zip(shown, orders, strict=True):
        seen = perceive(symbols, positions)
        captions.append(seen.smiles or seen.problem or "")
        try:
            mols.append(from_bonds(symbols, bonds))
        except ValueError:
            mols.append(None)
    return picture(drawings(mols, captions))


def _histogram(name: str, measured: str, label: str, *about: Any) -> Histograms:
    """Return histograms of distances or angles of all molecules."""
    function, (limits, caption) = GEOMETRY[measured], about
    return Histograms(
        name, lambda outcome: function(*_molecules(outcome)), label, limits,
        caption=caption,
    )  # fmt: skip


def _shapes(config: Any, shown: Shown) -> Any | None:
    """Return the strain, bonds, angles and rings of new molecules beside the data's."""
    found = [outcome for entry, outcome in shown if entry.name == "equivariant"]
    if not found:
        return None
    symbols, positions = _molecules(found[0])
    new = shapes_of([perceive(symbols, molecule) for molecule in positions])
    return side_by_side(shape_panels(new, config.reference.shapes))


_DISTANCE = (1.0, 6.0), "Distances between all pairs of two elements, bonded or not."
_ANGLE = (40.0, 180.0), "Angles between bonds, in degrees."

FIGURES = (
    pictures_of(
        "molecules",
        "equivariant",
        molecules,
        "New molecules of the equivariant model, the first 64, with the bonds that the "
        "paper's three steps infer.",
    ),
    pictures_of(
        "formulas",
        "equivariant",
        _formulas,
        "The same molecules as RDKit draws the inferred bonds; below, whether RDKit "
        "itself accepts the positions.",
    ),
    pictures_of(
        "turned", "equivariant", _turned, "New molecules, to turn with the mouse."
    ),
    pictures_of(
        "authors",
        "authors",
        molecules,
        "The molecules that the authors of the paper published, with inferred bonds.",
    ),
    Own(
        "shapes",
        _shapes,
        caption="Strain and displacement by relaxation with MMFF94, rings, bonds and "
        "angles of valid molecules of the equivariant model, beside all molecules of "
        "the formula.",
    ),
    _histogram("distances_c_c", "c_c", "C–C distance / Å", *_DISTANCE),
    _histogram("distances_c_o", "c_o", "C–O distance / Å", *_DISTANCE),
    _histogram("angles_c_c_c", "angle_c_c_c", "C–C–C angle / degrees", *_ANGLE),
    _histogram("angles_c_c_o", "angle_c_c_o", "C–C–O angle / degrees", *_ANGLE),
    Curves("training", "denoising_loss", "denoising loss", x_label="epoch", log_y=True),
)


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
    """Return the models and the floor."""

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
            "by denoising score matching at all noise levels, and sampled while the "
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


METRICS = {
    "molecule_stability": Metric(
        "molecules all of whose atoms have the bonds of their valence", "higher"
    ),
    "num_isomers": Metric("different molecules"),
    "validity": Metric("valid molecules", "higher"),
    "w1_c_c": Metric("distance of C–C distances (Wasserstein-1)", "lower", "Å"),
    "w1_c_o": Metric("distance of C–O distances (Wasserstein-1)", "lower", "Å"),
}

MOLECULES = Experiment(
    name="molecules",
    figure="section 5, figures 5 and 13",
    metrics=METRICS,
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
