"""`equistein sample`: new samples from a learned density."""

import dataclasses
import pathlib
from collections.abc import Sequence
from typing import Annotated

import jax.random as jr
import numpy as np
import tyro

from equistein.cli._fit import MODEL
from equistein.models import load, of_formula, pretrained
from equistein.molecules import formula, symbols_of, write_xyz
from equistein.runs import RunFolder, UserError
from equistein.samplers import NonFiniteError
from equistein.training import Fitted

_PRETRAINED = "pretrained:"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sample:
    """Draw new samples from a learned energy.

    Attributes:
        run: The folder of an `equistein fit`; the file of a learned density; or one
            that comes with the package, such as pretrained:c5h8o.
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
        fitted, species = _of_one_formula(_learned(self.run), self.formula)
        _check_out(self.out, species)
        part = self.out.with_name(f".{self.out.stem}.part{self.out.suffix}")
        try:
            part.touch()  # before the work: can it be written at all?
            points = fitted.sample(
                jr.key(self.seed), self.num_samples, label=self.label, progress=True
            )
            _write(part, np.asarray(points), self.label, species)
            part.replace(self.out)
        except OSError as error:
            raise UserError(f"Cannot write {self.out}: {error}.") from None
        except (ValueError, NonFiniteError) as error:
            raise UserError(str(error)) from None
        finally:
            part.unlink(missing_ok=True)
        told = f"samples of shape {points.shape[1:]}"
        told = f"molecules of {formula(species)}" if species else told
        print(f"{self.num_samples} {told}: {self.out}")
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
        if folder.read_config().get("command") != "fit":
            raise UserError(f"{path} is no folder of an `equistein fit`.")
        if not (path / MODEL).is_file():
            raise UserError(
                f"The fit in {path} is not finished; `equistein resume {path}`. If it "
                "diverged, start a new one."
            )
        return load(path / MODEL)
    except ValueError as error:
        raise UserError(str(error)) from None


def _of_one_formula(
    fitted: Fitted, wanted: str | None
) -> tuple[Fitted, Sequence[str] | None]:
    """Return the learned density of one formula, and its elements if it has any.

    Raises:
        UserError: If the formula is not one of those that were learned.
    """
    several, one = fitted.about.get("formulas"), fitted.about.get("atomic_numbers")
    known = [symbols_of(row) for row in several or ([one] if one else [])]
    names = [formula(row) for row in known]
    if wanted is not None and wanted not in names:
        raise UserError(
            f"--formula {wanted} is none of this run, which has "
            f"{', '.join(names) or 'no molecules'}."
        )
    if not known:
        return fitted, None
    number = names.index(wanted) if wanted else 0
    return (of_formula(fitted, number) if several else fitted), known[number]


def _check_out(out: pathlib.Path, species: Sequence[str] | None) -> None:
    """Raise `UserError` unless the samples can become this file."""
    suffixes = (".npy", ".npz", ".xyz") if species else (".npy", ".npz")
    if out.suffix not in suffixes:
        told = " An .xyz file needs elements, which only data from one has."
        raise UserError(
            f"--out must end in one of {', '.join(suffixes)}, but got {out}."
            + (told if out.suffix == ".xyz" else "")
        )
    if out.exists():
        raise UserError(f"{out} is there already; choose another --out.")
    if not out.absolute().parent.is_dir():
        raise UserError(f"There is no folder {out.absolute().parent}.")


def _write(
    path: pathlib.Path,
    points: np.ndarray,
    label: int | None,
    species: Sequence[str] | None,
) -> None:
    """Write samples in the format that the file's name tells."""
    if path.suffix == ".xyz" and species is not None:
        write_xyz(path, species, points, "sampled by equistein")
    elif path.suffix == ".npz":
        arrays = {"x": points}
        if label is not None:
            arrays["y"] = np.full(len(points), label)
        if species is not None:
            arrays["species"] = np.array(species)
        np.savez(path, allow_pickle=False, **arrays)
    else:
        np.save(path, points)
