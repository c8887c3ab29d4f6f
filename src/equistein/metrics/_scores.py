"""The numbers that the referee gives."""

import math
from typing import Any

import equinox as eqx

from equistein._gate import finite_gate

SPREADS = 4.0  # standard deviations that are no reason for a warning


class Score(eqx.Module):
    """One number of some samples, beside that of exact ones.

    Attributes:
        value: The number.
        floor: Its mean over draws of as many exact samples.
        spread: Its standard deviation over these draws.
        num_draws: How many draws.
        num_samples: How many samples it looked at.
        is_distance: Whether it is a distance from the reference, better the lower;
            otherwise it is a mean, better the closer to the floor's.
        exact: The exact value of a mean, where theory gives it.
        error: The standard error of a mean, from the samples.
        note: What else to know, as text.
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
        """Whether it is as exact samples have it, within four spreads.

        A mean with an exact value must also be within four standard errors of it.
        """
        if self.exact is not None and self.error is not None:
            if not abs(self.value - self.exact) <= SPREADS * self.error:
                return False
        return self.value == self.floor or self.deviation <= SPREADS


@finite_gate
class ReferenceQuality(eqx.Module):
    """How good the reference itself is.

    Attributes:
        num: The number of reference samples.
        virial: Their virial.
        virial_error: Its standard error.
        virial_exact: Its exact value.
        energy_w2: The distance in energy of two independent runs.
        mean_energies: The mean energy of both.
        origin: Where it comes from, as text.
    """

    num: int
    virial: float
    virial_error: float
    virial_exact: float
    energy_w2: float
    mean_energies: tuple[float, float]
    origin: str

    @property
    def passes(self) -> bool:
        """Whether the virial is right, within four standard errors."""
        gap = abs(self.virial - self.virial_exact)
        return gap <= SPREADS * self.virial_error


class Scores(eqx.Module):
    r"""What the referee says of some samples.

    Attributes:
        target: The name of the system.
        num_samples: The number of samples.
        num_distinct: How many of the rows differ.
        effective_size: $n^2 / \sum_k m_k^2$ of rows that occur $m_k$ times. Samples
            without an order have no autocorrelation, so no more can be said of them.
        scores: The scores, by name.
        reference: How good the reference is.
        published: Distances from published samples, where some were given.
        notes: What was done to the samples.
        warnings: What is wrong with the samples, or with what they are compared with.
        energies: Of the samples, the reference, and a draw of exact ones.
        distances: Their pair distances.
    """

    target: str
    num_samples: int
    num_distinct: int
    effective_size: float
    scores: dict[str, Score]
    reference: ReferenceQuality
    published: dict[str, float]
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
        """The answer in a sentence."""
        head = f"{self.num_samples} samples of {self.target}: "
        if not self.failures:
            return head + "no score tells them from as many exact samples."
        worst = sorted(self.failures, key=lambda name: -self.scores[name].deviation)
        names = ", ".join(_described(name, self.scores[name]) for name in worst)
        return head + f"not exact in {names}."

    def to_json(self) -> dict[str, Any]:
        """Return all numbers as JSON's types, by what they are of."""
        rows = self.scores.items()
        return {
            "target": self.target,
            "num_samples": self.num_samples,
            "num_distinct": self.num_distinct,
            "effective_size": self.effective_size,
            "verdict": self.verdict,
            "samples": {name: score.value for name, score in rows},
            "floor": {name: score.floor for name, score in rows},
            "spread": {name: score.spread for name, score in rows},
            "num_draws": {name: score.num_draws for name, score in rows},
            "num_compared": {name: score.num_samples for name, score in rows},
            "standard_error": {n: s.error for n, s in rows if s.error is not None},
            "exact": {n: s.exact for n, s in rows if s.exact is not None},
            "score_notes": {name: score.note for name, score in rows if score.note},
            "published": self.published,
            "reference": {
                "num": self.reference.num,
                "virial": self.reference.virial,
                "virial_error": self.reference.virial_error,
                "virial_exact": self.reference.virial_exact,
                "energy_w2_of_two_runs": self.reference.energy_w2,
                "mean_energies_of_two_runs": list(self.reference.mean_energies),
                "origin": self.reference.origin,
            },
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }


def _described(name: str, score: Score) -> str:
    if score.is_distance:
        return f"{name} ({score.ratio:.3g} times the floor)"
    return f"{name} ({score.value:.4g}, exact samples have {score.floor:.4g})"
