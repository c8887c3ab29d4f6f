"""`equistein sample`: new samples from a learned density."""

import dataclasses
import pathlib
from collections.abc import Sequence
from typing import Annotated, Any

import jax.random as jr
import numpy as np
import tyro

from equistein._files import unfinished
from equistein._types import Key
from equistein.cli._hold import held_atoms
from equistein.cli._output import answer, say
from equistein.cli._sample_files import begin, check_out, part_of, write_samples
from equistein.models import (
    formulas_of,
    load,
    molecule_numbers,
    of_formula,
    pretrained,
)
from equistein.molecules import formula, MissingASE, symbols_of
from equistein.runs import RunFolder, UserError
from equistein.samplers import NonFiniteError
from equistein.training import Fitted

_PRETRAINED = "pretrained:"
_COMPARED = 64  # molecules of a formula that training saw
_SCORES = ("validity", "molecule_stability", "atom_stability", "num_isomers")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sample:
    """Draw new samples from a learned energy.

    Attributes:
        run: The folder of an `equistein fit`; the file of a learned density; or one
            that comes with the package, such as pretrained:c5h8o.
        out: A new .npy or .npz file; of molecules also .xyz, .extxyz, .xyz.gz, .traj,
            .db or .pdb; after a table also .csv, .tsv or .parquet; of images also a new
            folder of .png files, a name without an ending.
        num_samples: How many.
        label: The class to draw from, its number or its name; by default all.
        formula: Of molecules the formula to draw; by default the most frequent. One
            that training never saw is scored beside the most frequent.
        hold: An .xyz file of a molecule, or a part of one, whose atoms are held where
            they are, relative to each other, while the others are drawn.
        hold_atoms: The numbers of those to hold, from 0 on, such as 0,1,2; by default
            all in the file.
        seed: The source of randomness.
    """

    run: Annotated[pathlib.Path, tyro.conf.Positional]
    out: pathlib.Path
    num_samples: int = 512
    label: str | None = None
    formula: str | None = None
    hold: pathlib.Path | None = None
    hold_atoms: str | None = None
    seed: int = 0

    def execute(self) -> int:
        """Draw, and write the file at the end."""
        if self.num_samples < 1 or not 0 <= self.seed < 2**63:
            raise UserError(
                "--num-samples must be at least 1, and --seed from 0 to 2^63 - 1, but "
                f"got {self.num_samples} and {self.seed}."
            )
        if self.hold_atoms is not None and self.hold is None:
            raise UserError("--hold-atoms needs --hold, the file that they are in.")
        learned = _learned(self.run)
        fitted, species = _of_one_formula(learned, self.formula)
        label = _label(self.label, fitted)
        check_out(self.out, species, fitted)
        clamp = None
        if self.hold is not None:
            clamp = held_atoms(self.hold, self.hold_atoms, species)
        try:
            with unfinished(part_of(self.out)) as part:
                begin(part)
                key = jr.key(self.seed)
                points = fitted.sample(
                    key, self.num_samples, label=label, clamp=clamp, progress=True
                )
                about = dict(fitted.about)
                write_samples(part, np.asarray(points), label, species, about)
                part.replace(self.out)
        except OSError as error:
            reason = error.strerror or error
            raise UserError(f"Cannot write {self.out}: {reason}.") from None
        except (MissingASE, ValueError, NonFiniteError) as error:
            raise UserError(str(error)) from None
        text = f"samples of shape {points.shape[1:]}"
        text = f"molecules of {formula(species)}" if species else text
        answer(
            f"{self.num_samples} {text}: {self.out}",
            out=self.out, num_samples=self.num_samples, shape=points.shape[1:],
        )  # fmt: skip
        if species:
            _print_scores(key, learned, species, np.asarray(points))
        return 0


def _learned(path: pathlib.Path) -> Fitted:
    """Return the learned density of a run folder, a file, or the package."""
    name = str(path)
    try:
        if name.startswith(_PRETRAINED) and not path.exists():
            return pretrained(name.removeprefix(_PRETRAINED))
        if path.is_file() and path.suffix == ".eqx":
            return load(path)
        folder = RunFolder.open(path)
        if folder.read_json("config.json").get("command") != "fit":
            raise UserError(f"{path} is no folder of an `equistein fit`.")
        if not folder.has(RunFolder.MODEL):
            raise UserError(
                f"The fit in {path} is not finished; `equistein resume {path}`. If it "
                "diverged, start a new one."
            )
        return load(path / RunFolder.MODEL)
    except ValueError as error:
        raise UserError(str(error)) from None


def _label(given: str | None, fitted: Fitted) -> int | None:
    """Return the number of the class that a word means.

    Raises:
        UserError: If there is none.
    """
    names = list(fitted.about.get("classes", []))
    if given is None:
        return None
    if given in names:
        return names.index(given)
    numbered = any(name.isdecimal() for name in names)
    if given.removeprefix("-").isdecimal() and not numbered:
        return int(given)
    text = f"one of {', '.join(names)}" if names else "the number of a class"
    raise UserError(f"--label must be {text}, but got {given!r}.")


def _of_one_formula(
    fitted: Fitted, wanted: str | None
) -> tuple[Fitted, Sequence[str] | None]:
    """Return the learned density of one formula, and its elements if it has any.

    Raises:
        UserError: If the formula is none, or has elements that were not learned.
    """
    names = formulas_of(fitted)
    if not names:
        if wanted is not None:
            raise UserError(f"--formula {wanted}: this run has learned no molecules.")
        return fitted, None
    try:
        one = of_formula(fitted, wanted or names[0])
    except ValueError as error:
        raise UserError(f"--formula: {error}") from None
    return one, symbols_of(one.about["atomic_numbers"])


def _print_scores(
    key: Key, learned: Fitted, species: Sequence[str], points: np.ndarray
) -> None:
    """Print how good molecules are; of a new formula, beside those of a known one."""
    known, name = formulas_of(learned), formula(species)
    _print_row(name, species, points)
    if name in known:
        return
    say(f"Training never saw {name}, but {', '.join(known)}. Drawing {known[0]} ...")
    one = of_formula(learned, known[0])
    like = one.sample(key, min(len(points), _COMPARED), progress=True)
    _print_row(f"{known[0]}, seen", symbols_of(one.about["atomic_numbers"]), like)


def _print_row(name: str, species: Sequence[str], points: Any) -> None:
    numbers = molecule_numbers(species, np.asarray(points), ())
    text = [f"{key} {numbers[key]:.3g}" for key in _SCORES if key in numbers]
    answer(f"{name} ({len(points)}): {', '.join(text)}", **{name: numbers})
