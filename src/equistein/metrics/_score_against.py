"""The referee: samples of a particle system against exact ones."""

import warnings
from typing import Any

import numpy as np

from equistein._gate import finite_gate
from equistein._numbers import check_integers
from equistein._types import Particles
from equistein.metrics._geometric_wasserstein import geometric_wasserstein
from equistein.metrics._given_clouds import as_clouds, GivenClouds
from equistein.metrics._measured_clouds import measured, MeasuredClouds
from equistein.metrics._particle_density import AbstractParticleDensity
from equistein.metrics._score_floors import all_scores, energy_w2, mean
from equistein.metrics._scores import ReferenceQuality, Score, Scores, SPREADS

_GIVEN = "two sets that were given"
_TEMPERED = "two runs of parallel tempering, made with seeds 1000 and 1001"
_CORRELATED = 2.0  # samples of a ladder are not quite independent
_POOL = 4  # times as many exact samples as samples, for the floors


@finite_gate
def score_against(
    samples: Any,
    target: AbstractParticleDensity,
    *,
    reference: tuple[Any, Any] | None = None,
    published: Any = None,
    num_draws: int = 20,
    num_geometric: int = 200,
) -> Scores:
    """Compare samples of a particle system with exact ones.

    Every score has its floor: what exact samples of the same number have, as a mean and
    a spread over several draws. The scores are the Wasserstein-2 distances of the
    energies and, up to motions and swaps, of the clouds; the total variation of the
    pair distances in 200 bins; the mean energy; the virial, whose exact value is the
    number of degrees of freedom; and the fraction of each state, where states are few.

    The exact samples are two runs of the target's own parallel tempering: the first is
    compared with, the second is what floors are drawn from, and how far apart the two
    are is the error of the reference itself. They are made once and kept in the cache;
    the first time may take minutes. What is chosen among samples is chosen by a fixed
    seed, so that the same samples have the same scores.

    Args:
        samples: The samples: `(n, particle, dim)`, or rows of coordinates. They are
            centered; rows are cut into particles.
        target: What they should be samples of.
        reference: Two independent sets of exact samples to use instead, the second at
            least twice as many as the samples.
        published: Published samples, to give the distances from them too.
        num_draws: The draws of each floor.
        num_geometric: The clouds that the distance of clouds looks at.

    Returns:
        The scores. What is wrong is among their `warnings`, and warned of.

    Raises:
        ValueError: If these cannot be samples of the target, or there are too few
            exact ones.
    """
    if not isinstance(target, AbstractParticleDensity):
        raise ValueError(
            "`score_against` needs `target`, a particle system such as DoubleWell() or "
            f"LennardJones(), but got {target!r}."
        )
    sizes = {"num_draws": num_draws, "num_geometric": num_geometric}
    check_integers("`score_against`", least=2, **sizes)
    given = as_clouds(samples, target)
    known = None if published is None else as_clouds(published, target)
    origin = _GIVEN if reference is not None else _TEMPERED
    exact = reference or _two_runs(target, len(given.points))
    scores = _judged(target, given, known, exact, origin, **sizes)
    for warning in scores.warnings:
        warnings.warn(warning, stacklevel=2)
    return scores


def _judged(
    target: AbstractParticleDensity,
    given: GivenClouds,
    known: GivenClouds | None,
    exact: tuple[Any, Any],
    origin: str,
    *,
    num_draws: int,
    num_geometric: int,
) -> Scores:
    """Return the scores of samples that are fit for it."""
    first, second = (
        measured(target.log_density, as_clouds(part, target).points) for part in exact
    )
    if len(second.points) < 2 * len(given.points):
        raise ValueError(
            "`score_against` needs a second `reference` of at least twice as many as "
            f"the {len(given.points)} samples, but it has {len(second.points)}: give "
            "more, or score fewer samples."
        )
    ours = measured(target.log_density, given.points)
    scores = all_scores(
        target, ours, given.effective_size, first, second, num_draws, num_geometric
    )
    quality = _quality(target, first, second, origin)
    reasons = _reasons("The samples", scores["virial"])
    reasons += _reasons_of_reference(quality, first, second)
    against = {}
    if known is not None:
        theirs = measured(target.log_density, known.points)
        against = _against(target, ours, theirs, num_geometric)
        reasons += _reasons_of_published(target, theirs, known.effective_size, first)
    draw = second.take(np.arange(len(ours.points)))
    shown = {"samples": ours, "reference": first, "exact samples": draw}
    return Scores(
        target=target.name,
        num_samples=len(given.points),
        num_distinct=len(given.multiplicities),
        effective_size=given.effective_size,
        scores=scores,
        reference=quality,
        published=against,
        notes=given.notes,
        warnings=tuple(reasons),
        energies={name: np.asarray(one.energies) for name, one in shown.items()},
        distances={name: np.asarray(one.distances) for name, one in shown.items()},
    )


def _two_runs(target: AbstractParticleDensity, num: int) -> tuple[Particles, Particles]:
    """Return two independent sets of reference samples, the second large enough."""
    size = target.num_reference
    enough = -(-_POOL * num // size) * size  # in whole sizes, which are cached
    return target.reference(size, 0), target.reference(enough, 1)


def _quality(
    target: AbstractParticleDensity,
    first: MeasuredClouds,
    second: MeasuredClouds,
    origin: str,
) -> ReferenceQuality:
    virials = np.asarray(first.virials, float)
    return ReferenceQuality(
        num=len(virials),
        virial=float(virials.mean()),
        virial_error=float(virials.std(ddof=1) / len(virials) ** 0.5),
        virial_exact=float(target.degrees_of_freedom),
        energy_w2=float(energy_w2(first.energies, second.energies)),
        mean_energies=(mean(first.energies), mean(second.energies)),
        origin=origin,
    )


def _reasons(whose: str, virial: Score) -> list[str]:
    """Return what the virial of some samples says against them."""
    assert virial.exact is not None
    assert virial.error is not None
    gap = abs(virial.value - virial.exact)
    if gap <= SPREADS * virial.error:
        return []
    return [
        f"{whose} fail the virial theorem: {virial.value:.4g} instead of "
        f"{virial.exact:g}, {gap / virial.error:.3g} standard errors off."
    ]


def _reasons_of_reference(
    quality: ReferenceQuality, first: MeasuredClouds, second: MeasuredClouds
) -> list[str]:
    """Return what the virial, and the second run, say against the reference."""
    reasons = []
    if not quality.passes:
        reasons.append(
            f"The reference fails the virial theorem: {quality.virial:.4g} +- "
            f"{quality.virial_error:.2g} instead of {quality.virial_exact:g}; no score "
            "means much."
        )
    one, other = quality.mean_energies
    error = np.hypot(_standard_error(first), _standard_error(second))
    if abs(one - other) > _CORRELATED * SPREADS * error:
        reasons.append(
            f"The two runs of the reference differ: their mean energies are {one:.4g} "
            f"and {other:.4g}; no score means much."
        )
    return reasons


def _standard_error(part: MeasuredClouds) -> float:
    """Return the standard error of the mean energy, of independent samples."""
    energies = np.asarray(part.energies, float)
    return float(energies.std(ddof=1) / len(energies) ** 0.5)


def _against(
    target: AbstractParticleDensity,
    ours: MeasuredClouds,
    theirs: MeasuredClouds,
    num_geometric: int,
) -> dict[str, float]:
    """Return the distances from published samples."""
    few = min(num_geometric, len(ours.points), len(theirs.points))
    generator = np.random.default_rng(0)
    some, others = (
        part.points[generator.choice(len(part.points), few, replace=False)]
        for part in (ours, theirs)
    )
    return {
        "energy_w2": float(energy_w2(ours.energies, theirs.energies)),
        "geometric_w2": geometric_wasserstein(some, others, target.group).value,
        "num": len(theirs.points),
    }


def _reasons_of_published(
    target: AbstractParticleDensity,
    theirs: MeasuredClouds,
    effective_size: float,
    first: MeasuredClouds,
) -> list[str]:
    """Return what the virial and the mean energy say against published samples."""
    virials, energies = (
        np.asarray(part, float) for part in (theirs.virials, theirs.energies)
    )
    worth = effective_size**0.5
    virial = Score(
        value=float(virials.mean()), floor=0.0, spread=0.0, num_draws=0,
        num_samples=len(virials), exact=float(target.degrees_of_freedom),
        error=float(virials.std(ddof=1)) / worth,
    )  # fmt: skip
    reasons = _reasons("The published samples", virial)
    exact = np.asarray(first.energies, float)
    error = np.hypot(energies.std(ddof=1) / worth, exact.std() / len(exact) ** 0.5)
    gap = abs(float(energies.mean() - exact.mean()))
    if gap > SPREADS * error:
        reasons.append(
            f"The published samples have mean energy {energies.mean():.4g}, the "
            f"reference {exact.mean():.4g}, {gap / error:.3g} standard errors off."
        )
    return reasons
