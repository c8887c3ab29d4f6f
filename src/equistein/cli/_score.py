"""`equistein score`: samples of a particle system against exact ones."""

import dataclasses
import json
import pathlib
import warnings
from typing import Annotated, Any, Literal, NamedTuple

import tyro

from equistein._files import write_whole
from equistein.cli._output import answer, finite, say
from equistein.data import DataError, published_clouds, read_points
from equistein.metrics import published_scores, score_against, Scores
from equistein.plotting import against_exact, figure_file
from equistein.runs import UserError
from equistein.targets import AbstractParticleSystem, DoubleWell, LennardJones


class _System(NamedTuple):
    """A target, and where its published samples are in the data folder."""

    target: AbstractParticleSystem
    published: str | None


_SYSTEMS = {
    "dw4": _System(DoubleWell(), "dw4/test_split_DW4.npy"),
    "lj13": _System(LennardJones(), "lj13/test_split_LJ13-1000.npy"),
    "lj55": _System(LennardJones(55), None),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Score:
    """Compare samples of a particle system with exact ones.

    Attributes:
        file: An .npy file of rows or clouds, or an .npz file with an array x.
        target: What they should be samples of, at temperature 1.
        evaluations: The evaluations of energy and score that they took in all, to show
            beside what papers say.
        out: A new or empty folder for metrics.json and a picture.
        num_geometric: The clouds that the distance of clouds looks at.
        num_draws: The draws of exact samples of each floor.
    """

    file: Annotated[pathlib.Path, tyro.conf.Positional]
    target: Literal["dw4", "lj13", "lj55"]
    evaluations: float | None = None
    out: pathlib.Path | None = None
    num_geometric: int = 200
    num_draws: int = 20

    def execute(self) -> int:
        """Score, print the answer first, and write the folder at the end."""
        self._check()
        system = _SYSTEMS[self.target]
        try:
            scores = self._scores(system)
        except ValueError as error:
            raise UserError(str(error)) from None
        described = _described(scores, str(self.file), self.evaluations)
        answer(text_of(scores, self.evaluations), **described)
        if self.out is not None:
            _write(self.out, scores, described)
            answer(f"\nNumbers and picture: {self.out}", out=self.out)
        return 0

    def _check(self) -> None:
        """Raise `UserError` for settings that are invalid, before work begins."""
        if self.evaluations is not None and not 0 < self.evaluations < float("inf"):
            raise UserError(
                f"--evaluations must be a positive number, but got {self.evaluations}."
            )
        if self.num_geometric < 2 or self.num_draws < 2:
            raise UserError(
                "--num-geometric and --num-draws must be at least 2, but got "
                f"{self.num_geometric} and {self.num_draws}."
            )
        if self.out is not None and self.out.exists():
            if not self.out.is_dir() or any(self.out.iterdir()):
                raise UserError(f"--out {self.out} is not a new or empty folder.")

    def _scores(self, system: _System) -> Scores:
        target = system.target
        samples, published = read_points(self.file), None
        if system.published is not None:
            try:
                published = published_clouds(
                    system.published, target.num_particles, target.dim
                )
            except DataError as error:
                say(f"The published samples are left out: {error}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # they are printed
            return score_against(
                samples, target, published=published,
                num_draws=self.num_draws, num_geometric=self.num_geometric,
            )  # fmt: skip


def text_of(scores: Scores, evaluations: float | None) -> str:
    """Return what is printed: the answer, the scores, and what papers say."""
    reference = scores.reference
    lines = [scores.verdict]
    lines += [f"Warning: {warning}" for warning in scores.warnings]
    lines += [*scores.notes, ""]
    lines.append(f"{'':<14}{'samples':>10}{'exact ones':>20}   ")
    for name, score in scores.scores.items():
        floor = f"{score.floor:.4g} +- {score.spread:.2g}"
        text = f"{score.ratio:.2f} times" if score.is_distance else ""
        if score.error is not None:
            text = f"+- {score.error:.2g}"
        mark = "" if score.is_exact else "  not exact"
        note = f"  ({score.note})" if score.note else ""
        lines.append(f"{name:<14}{score.value:>10.4g}{floor:>20}   {text}{mark}{note}")
    num_draws = max(score.num_draws for score in scores.scores.values())
    lines += [
        f"distinct      {scores.num_distinct:>10} of {scores.num_samples}; repeats "
        f"leave an effective size of {scores.effective_size:.0f}",
        "",
        f"Exact ones: mean and spread of {num_draws} draws of {scores.num_samples}, as "
        f"many as the samples (5 of geometric_w2).",
        f"Reference: {reference.num} samples, {reference.origin}; the virial is "
        f"{reference.virial:.4g} +- {reference.virial_error:.2g} (exactly "
        f"{reference.virial_exact:g}); the two differ by {reference.energy_w2:.3g} in "
        "energy W2, the error of the reference itself.",
    ]
    if scores.published:
        lines.append(
            f"Against {scores.published['num']} published samples: energy W2 "
            f"{scores.published['energy_w2']:.4g}, geometric W2 "
            f"{scores.published['geometric_w2']:.4g}."
        )
    return "\n".join([*lines, *_beside_papers(scores, evaluations)])


def _beside_papers(scores: Scores, evaluations: float | None) -> list[str]:
    """Return the rows of papers, with these samples in their place."""
    anchors = published_scores(scores.target)
    if not anchors:
        return []
    energy, clouds = (
        scores.scores[name].value for name in ("energy_w2", "geometric_w2")
    )
    rows = [(a.energy_w2, a.method, a.geometric_w2, a.evaluations) for a in anchors]
    rows.append((energy, "> these samples", clouds, evaluations))
    rows.sort(key=lambda row: float("inf") if row[0] is None else row[0])
    few = scores.scores["geometric_w2"].num_samples
    return [
        "",
        "What papers say, each judged by its own script and reference "
        f"(geometric W2: here of {few} clouds, the fewer the larger):",
        f"{'':<30}{'energy W2':>10}{'geometric W2':>14}{'evaluations':>13}",
        *(
            f"{method:<30}{_number(w2):>10}{_number(far):>14}{_count(spent):>13}"
            for w2, method, far, spent in rows
        ),
    ]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _count(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _described(scores: Scores, file: str, evaluations: float | None) -> dict[str, Any]:
    """Return what metrics.json holds."""
    described: dict[str, Any] = {"file": file, "evaluations": evaluations}
    described |= scores.to_json()
    described["papers"] = [row._asdict() for row in published_scores(scores.target)]
    return described


def _write(out: pathlib.Path, scores: Scores, described: dict[str, Any]) -> None:
    """Write metrics.json and the picture."""
    figure = against_exact(
        {
            "energy": _panel(scores.energies),
            "distance of two particles": _panel(scores.distances),
        }
    )
    try:
        out.mkdir(parents=True, exist_ok=True)
        for suffix in ("png", "svg"):
            write_whole(out / f"score.{suffix}", figure_file(figure, suffix))
        content = json.dumps(finite(described), indent=1) + "\n"
        write_whole(out / "metrics.json", content.encode())
    except OSError as error:
        raise UserError(f"Cannot write to {out}: {error}.") from None


def _panel(values: dict[str, Any]) -> tuple[Any, Any, Any]:
    return values["samples"], values["reference"], values["exact samples"]
