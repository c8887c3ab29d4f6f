"""Scores of particle systems: what `score_against` returns, and what papers report."""

import csv
import math
import pathlib
from typing import Any, NamedTuple

import equinox as eqx

from equistein._check_arguments import check_finite_arguments

SPREADS = 4.0  # standard deviations up to which nothing is reported


class Score(eqx.Module):
    """A number computed from samples, with the same of exact ones.

    Attributes:
        floor: Its mean over draws of as many exact samples.
        spread: Its standard deviation over these draws.
        is_distance: Whether it is a distance, better the lower, and not a mean.
        exact: The exact value of a mean, where theory gives it.
        error: The standard error of a mean.
    """

    value: float
    floor: float
    spread: float
    num_draws: int
    num_samples: int
    is_distance: bool = True
    exact: float | None = None
    error: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float:
        """The value over its floor."""
        return self.value / self.floor if self.floor else math.inf

    @property
    def deviation(self) -> float:
        """How many spreads the value is from the floor; of a distance, above it."""
        gap = self.value - self.floor
        gap = gap if self.is_distance else abs(gap)
        return gap / self.spread if self.spread else math.copysign(math.inf, gap)

    @property
    def is_exact(self) -> bool:
        """Whether exact samples have such a value, within four spreads.

        A mean with an exact value must also be within four standard errors of it.
        """
        if self.exact is not None and self.error is not None:
            if not abs(self.value - self.exact) <= SPREADS * self.error:
                return False
        return self.value == self.floor or self.deviation <= SPREADS


@check_finite_arguments
class ReferenceQuality(eqx.Module):
    """The virial of a reference, and the energy distance of two independent runs."""

    num: int
    virial: float
    virial_error: float
    virial_exact: float
    energy_w2: float
    origin: str


_COLUMNS = {
    "samples": "value", "floor": "floor", "spread": "spread", "num_draws": "num_draws",
    "num_compared": "num_samples", "standard_error": "error", "exact": "exact",
    "score_notes": "note",
}  # fmt: skip


class Scores(eqx.Module):
    r"""All scores of some samples.

    Attributes:
        num_distinct: The number of distinct rows.
        effective_size: $n^2 / \sum_k m_k^2$ of rows that occur $m_k$ times; the
            autocorrelation of samples without an order is unknown.
        notes: What was done to the samples.
        warnings: What is wrong with the samples, or with the reference.
        energies: Of the samples, the reference, and a draw of exact ones.
        distances: Their pair distances.
    """

    target: str
    num_samples: int
    num_distinct: int
    effective_size: float
    scores: dict[str, Score]
    reference: ReferenceQuality
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    energies: dict[str, Any]
    distances: dict[str, Any]

    @property
    def failures(self) -> tuple[str, ...]:
        """The names of the scores that exact samples do not have."""
        return tuple(name for name, score in self.scores.items() if not score.is_exact)

    @property
    def verdict(self) -> str:
        """The result in a sentence."""
        head = f"{self.num_samples} samples of {self.target}: "
        if not self.failures:
            return head + "no score tells them from as many exact samples."

        def described(name: str) -> str:
            score = self.scores[name]
            if score.is_distance:
                return f"{name} ({score.ratio:.3g} times the floor)"
            return f"{name} ({score.value:.4g}, exact samples have {score.floor:.4g})"

        worst = sorted(self.failures, key=lambda name: -self.scores[name].deviation)
        return f"{head}not exact in {', '.join(map(described, worst))}."

    def __str__(self) -> str:
        """Return the verdict, the warnings, and a table of the scores."""
        reference = self.reference
        lines = [self.verdict, *(f"Warning: {text}" for text in self.warnings)]
        lines += [*self.notes, "", f"{'':<14}{'samples':>10}{'exact ones':>20}"]
        for name, score in self.scores.items():
            floor = f"{score.floor:.4g} +- {score.spread:.2g}"
            text = f"{score.ratio:.2f} times" if score.is_distance else ""
            text = text if score.error is None else f"+- {score.error:.2g}"
            text += "" if score.is_exact else "  not exact"
            text += f"  ({score.note})" if score.note else ""
            lines.append(f"{name:<14}{score.value:>10.4g}{floor:>20}   {text}")
        lines += [
            "",
            f"Distinct samples: {self.num_distinct} of {self.num_samples}; repeats "
            f"leave an effective size of {self.effective_size:.0f}.",
            "Exact ones: mean and spread of several draws of as many.",
            f"Reference: {reference.num} samples, {reference.origin}; the virial is "
            f"{reference.virial:.4g} +- {reference.virial_error:.2g} (exactly "
            f"{reference.virial_exact:g}); the two differ by {reference.energy_w2:.3g} "
            "in energy W2, the error of the reference itself.",
        ]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Return all numbers as JSON's types, by what they are of."""
        columns = {
            column: {
                name: getattr(score, field)
                for name, score in self.scores.items()
                if getattr(score, field) not in (None, "")
            }
            for column, field in _COLUMNS.items()
        }
        return {
            "target": self.target,
            "num_samples": self.num_samples,
            "num_distinct": self.num_distinct,
            "effective_size": self.effective_size,
            "verdict": self.verdict,
            **columns,
            "reference": vars(self.reference),
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }


class PublishedScore(NamedTuple):
    """A sampler's scores, of those of `Scores`, as its paper reports them, or None."""

    method: str
    geometric_w2: float | None
    energy_w2: float | None
    evaluations: float | None


@check_finite_arguments
def published_scores(name: str) -> tuple[PublishedScore, ...]:
    """Return what papers report of their samplers of a system, in order of appearance.

    Each paper used its own script and reference, so compare loosely. Systems other than
    `dw4`, `lj13` and `lj55` have none.
    """
    with pathlib.Path(__file__).with_name("published_scores.csv").open() as file:
        rows = [row for row in csv.reader(file) if row[0] == name]
    numbers = lambda row: (float(text) if text else None for text in row[2:])
    return tuple(PublishedScore(row[1], *numbers(row)) for row in rows)
