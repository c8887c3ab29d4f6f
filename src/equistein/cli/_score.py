"""`equistein score`: samples of a particle system against exact ones."""

import dataclasses
import math
import pathlib
import warnings
from typing import Annotated, Literal

import tyro

from equistein.cli._output import answer, write_numbers
from equistein.data import read_points
from equistein.metrics import published_scores, score_against, Scores
from equistein.plotting import against_exact
from equistein.runs import RunFolder, UserError
from equistein.targets import DoubleWell, LennardJones

_TARGETS = {"dw4": DoubleWell(), "lj13": LennardJones(), "lj55": LennardJones(55)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Score:
    """Compare samples of a particle system with exact ones.

    Attributes:
        file: An .npy file of rows or clouds, or an .npz file with an array x.
        target: What they should be samples of, at temperature 1.
        evaluations: The evaluations of energy and score that they took in all, to show
            beside what papers say.
        out: A new or empty folder for metrics.json and a picture.
    """

    file: Annotated[pathlib.Path, tyro.conf.Positional]
    target: Literal["dw4", "lj13", "lj55"]
    evaluations: float | None = None
    out: pathlib.Path | None = None

    def execute(self) -> int:
        """Score, print the answer first, and write the folder at the end."""
        if self.evaluations is not None and not 0 < self.evaluations < math.inf:
            raise UserError(
                f"--evaluations must be a positive number, but got {self.evaluations}."
            )
        if self.out is not None and self.out.exists() and any(self.out.iterdir()):
            raise UserError(f"--out {self.out} is not a new or empty folder.")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # they are printed
            scores = score_against(read_points(self.file), _TARGETS[self.target])
        described = {"file": str(self.file), "evaluations": self.evaluations}
        described |= scores.to_json()
        described["papers"] = [row._asdict() for row in published_scores(scores.target)]
        lines = [str(scores), *_beside_papers(scores, self.evaluations)]
        answer("\n".join(lines), **described)
        if self.out is not None:
            series = {"energy": scores.energies, "distance of two": scores.distances}
            figure = against_exact({k: tuple(v.values()) for k, v in series.items()})  # type: ignore
            folder = RunFolder.create(self.out)
            write_numbers(folder, described, {"score": figure})
        return 0


def _beside_papers(scores: Scores, evaluations: float | None) -> list[str]:
    """Return the rows of papers, with these samples in their place."""
    papers = published_scores(scores.target)
    if not papers:
        return []
    energy, clouds = scores.scores["energy_w2"], scores.scores["geometric_w2"]
    rows = [(a.energy_w2, a.method, a.geometric_w2, a.evaluations) for a in papers]
    rows.append((energy.value, "> these samples", clouds.value, evaluations))
    rows.sort(key=lambda row: math.inf if row[0] is None else row[0])
    number = lambda value, form: "-" if value is None else format(value, form)
    return [
        "",
        "What papers say, each judged by its own script and reference (geometric W2: "
        f"here of {clouds.num_samples} clouds, the fewer the larger):",
        f"{'':<30}{'energy W2':>10}{'geometric W2':>14}{'evaluations':>13}",
        *(
            f"{method:<30}{number(energy_w2, '.3g'):>10}{number(far, '.3g'):>14}"
            f"{number(spent, ',.0f'):>13}"
            for energy_w2, method, far, spent in rows
        ),
    ]
