"""`equistein sample`: new samples from a learned energy."""

import dataclasses
import pathlib
from typing import Annotated

import jax.random as jr
import numpy as np
import tyro

from equistein.cli._dataset import write_samples
from equistein.cli._fit import load_run
from equistein.molecules import formula
from equistein.runs import RunFolder, UserError
from equistein.samplers import NonFiniteError

_PRETRAINED = "pretrained:"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sample:
    """Draw new samples from a learned energy.

    Attributes:
        run: The folder of an `equistein fit`, or a model that comes with the package,
            such as pretrained:c5h8o.
        out: A new .npy, .npz or .xyz file.
        num_samples: How many.
        label: The class to draw from; by default all.
        formula: Of molecules of several formulas, the one to draw; by default the most
            frequent.
        seed: The source of randomness.
    """

    run: Annotated[pathlib.Path, tyro.conf.Positional]
    out: pathlib.Path
    num_samples: int = 512
    label: int | None = None
    formula: str | None = None
    seed: int = 0

    def execute(self) -> int:
        """Draw, and write the file at the end."""
        if self.num_samples < 1 or not 0 <= self.seed < 2**63:
            raise UserError(
                "--num-samples must be at least 1, and --seed from 0 to 2^63 - 1, but "
                f"got {self.num_samples} and {self.seed}."
            )
        is_path, name = self.run.exists(), str(self.run)
        if name.startswith(_PRETRAINED) and not is_path:
            folder = pretrained(name.removeprefix(_PRETRAINED))
        else:
            folder = RunFolder.open(self.run)
        described = folder.read_config()
        number, species = _chosen(described, self.formula)
        suffixes = (".npy", ".npz", ".xyz") if species else (".npy", ".npz")
        if self.out.suffix not in suffixes:
            raise UserError(
                f"--out must end in one of {', '.join(suffixes)}, but got {self.out}."
                + (
                    " An .xyz file needs elements, which only data from one has."
                    if self.out.suffix == ".xyz"
                    else ""
                )
            )
        if self.out.exists():
            raise UserError(f"{self.out} is there already; choose another --out.")
        if not self.out.absolute().parent.is_dir():
            raise UserError(f"There is no folder {self.out.absolute().parent}.")
        fitted = load_run(folder)
        if number is not None:
            fitted = fitted.formula(number)
        part = self.out.with_name(f".{self.out.stem}.part{self.out.suffix}")
        try:
            part.touch()  # before the work: can it be written at all?
            points = fitted.sample(
                jr.key(self.seed), self.num_samples, label=self.label, progress=True
            )
            write_samples(part, np.asarray(points), self.label, species)
            part.replace(self.out)
        except OSError as error:
            raise UserError(f"Cannot write {self.out}: {error}.") from None
        except (ValueError, NonFiniteError) as error:
            raise UserError(str(error)) from None
        finally:
            part.unlink(missing_ok=True)
        what = f"samples of shape {points.shape[1:]}"
        if species:
            what = f"molecules of {formula(species)}"
        print(f"{self.num_samples} {what}: {self.out}")
        return 0


def _chosen(described: dict, wanted: str | None) -> tuple[int | None, list[str] | None]:
    """Return the number of a formula, if the run has several, and its elements.

    Raises:
        UserError: If the run has no such formula.
    """
    formulas, species = described.get("formulas"), described.get("species")
    known = [species] if species else formulas or []
    names = [formula(row) for row in known]
    if wanted is not None and wanted not in names:
        raise UserError(
            f"--formula {wanted} is none of this run, which has "
            f"{', '.join(names) or 'no molecules'}."
        )
    if not formulas:
        return None, species
    number = names.index(wanted) if wanted else 0
    return number, formulas[number]


def pretrained(name: str) -> RunFolder:
    """Open a fit that comes with the package.

    Raises:
        UserError: If there is none of this name.
    """
    shelf = pathlib.Path(__file__).parents[1] / "pretrained"
    known = sorted(path.parent.name for path in shelf.glob("*/config.json"))
    if name not in known:
        raise UserError(
            f"There is no pretrained model {name!r}, only {', '.join(known)}."
        )
    return RunFolder(shelf / name)
