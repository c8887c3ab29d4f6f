"""`equistein sample`: new samples from a learned energy."""

import dataclasses
import pathlib
from collections.abc import Sequence
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


def sample_run(arguments: Sequence[str]) -> int:
    """Draw new samples from a fitted energy into a file."""

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Arguments:
        run: Annotated[
            pathlib.Path,
            tyro.conf.Positional,
            tyro.conf.arg(
                help="the folder of an `equistein fit`, or a model that comes with "
                "the package, such as pretrained:c5h8o"
            ),
        ]
        out: Annotated[
            pathlib.Path, tyro.conf.arg(help="a new .npy, .npz or .xyz file")
        ]
        num_samples: Annotated[int, tyro.conf.arg(help="how many")] = 512
        label: Annotated[
            int | None, tyro.conf.arg(help="the class to draw from; by default all")
        ] = None
        formula: Annotated[
            str | None,
            tyro.conf.arg(
                help="of molecules of several formulas, the one to draw; by default "
                "the most frequent"
            ),
        ] = None
        seed: Annotated[int, tyro.conf.arg(help="the source of randomness")] = 0

    parsed = tyro.cli(
        Arguments,
        args=list(arguments),
        prog="equistein sample",
        description="Draw new samples from a learned energy.",
    )
    if parsed.num_samples < 1 or not 0 <= parsed.seed < 2**63:
        raise UserError(
            "--num-samples must be at least 1, and --seed at least 0 and below 2^63, "
            "but got "
            f"{parsed.num_samples} and {parsed.seed}."
        )
    is_path, name = parsed.run.exists(), str(parsed.run)
    if name.startswith(_PRETRAINED) and not is_path:
        folder = pretrained(name.removeprefix(_PRETRAINED))
    else:
        folder = RunFolder.open(parsed.run)
    described = folder.read_config()
    number, species = _chosen(described, parsed.formula)
    suffixes = (".npy", ".npz", ".xyz") if species else (".npy", ".npz")
    if parsed.out.suffix not in suffixes:
        raise UserError(
            f"--out must end in one of {', '.join(suffixes)}, but got {parsed.out}."
            + (
                " An .xyz file needs elements, which only data from one has."
                if parsed.out.suffix == ".xyz"
                else ""
            )
        )
    if parsed.out.exists():
        raise UserError(f"{parsed.out} is there already; choose another --out.")
    if not parsed.out.absolute().parent.is_dir():
        raise UserError(f"There is no folder {parsed.out.absolute().parent}.")
    fitted = load_run(folder)
    if number is not None:
        fitted = fitted.formula(number)
    part = parsed.out.with_name(f".{parsed.out.stem}.part{parsed.out.suffix}")
    try:
        part.touch()  # before the work: can it be written at all?
        points = fitted.sample(
            jr.key(parsed.seed), parsed.num_samples, label=parsed.label, progress=True
        )
        write_samples(part, np.asarray(points), parsed.label, species)
        part.replace(parsed.out)
    except OSError as error:
        raise UserError(f"Cannot write {parsed.out}: {error}.") from None
    except (ValueError, NonFiniteError) as error:
        raise UserError(str(error)) from None
    finally:
        part.unlink(missing_ok=True)
    what = f"samples of shape {points.shape[1:]}"
    if species:
        what = f"molecules of {formula(species)}"
    print(f"{parsed.num_samples} {what}: {parsed.out}")
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
