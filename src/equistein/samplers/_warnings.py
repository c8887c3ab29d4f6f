"""Reasons to distrust the samples of a run."""

import contextlib
import dataclasses
import math
import warnings
from collections.abc import Iterator

import numpy as np

from equistein._types import LogDensity, Particles
from equistein.samplers._base import AbstractSampler
from equistein.samplers._markov_chains import ChainState
from equistein.samplers._samples import Samples
from equistein.samplers._split_r_hat import split_r_hat

_FEW_STEPS = 10  # that tell nothing
_ACCEPTANCE = 0.05
_DRIFT = 1e4  # times as far as the start
_R_HAT = 1.2
_CHAINS, _DRAWS = 4, 20  # that R-hat takes at least
_EFFECTIVE = 0.1  # of the particles
_INDEPENDENT = 8  # draws of a chain, at least


class SamplingWarning(RuntimeWarning):
    """A run ended, but there is a reason to distrust its samples."""


def warn_of_samples(text: str, stacklevel: int = 2) -> None:
    """Issue a `SamplingWarning`.

    Args:
        text: The reason.
        stacklevel: Whose line the warning shows, as in `warnings.warn`.
    """
    warnings.warn(text, SamplingWarning, stacklevel=stacklevel + 1)


def zero_scores(particles: np.ndarray, scores: np.ndarray) -> tuple[str, ...]:
    """Return a warning if the score vanishes at most particles, in several places."""
    zero = _num_unguided(particles, scores)
    if not zero:
        return ()
    return (
        f"the gradient of `log_density` is exactly zero at {zero} of {len(scores)} "
        "particles at the start: a density that is constant or rounded there guides no "
        "particle.",
    )


def lost_symmetry(
    sampler: AbstractSampler, log_density: LogDensity, ends: Particles
) -> tuple[str, ...]:
    """Return a warning if what the sampler relies on is lost where particles ended.

    Args:
        sampler: What relies on it; it was there at the start.
        log_density: The density.
        ends: Where the particles of all runs ended.
    """
    try:
        sampler.check(log_density, ends)
    except ValueError as error:
        reason, at_a_point, _ = str(error).partition(": at the point")
        if not at_a_point:  # of the path to the density, not of a symmetry
            return (f"as the particles are at the end, {reason}",)
        return (
            f"the symmetry holds where the particles began, not where they ended: "
            f"{reason}. They sample another density: correct it there.",
        )
    return ()


def with_warnings(
    samples: Samples, start: np.ndarray, known: tuple[str, ...], name: str
) -> Samples:
    """Return samples with all their warnings, each of which is issued too.

    Args:
        samples: Of one run, or of several.
        start: The particles each began with.
        known: The warnings that are known before.
        name: The name of the sampler.
    """
    if isinstance(samples.num_steps, np.ndarray):
        lines: dict[str, list[str]] = {}
        stateless = dataclasses.replace(samples, state=None)
        for index, first in enumerate(start):
            for text in _warnings_of_run(stateless[index], first):
                lines.setdefault(text, []).append(str(index))
        new = [f"in run {', '.join(lines[text][:9])}: {text}" for text in lines]
    else:
        new = _warnings_of_run(samples, start)
    texts = tuple(f"{name}: {text}" for text in (*known, *new))
    for text in texts:
        warn_of_samples(text, stacklevel=3)
    return dataclasses.replace(samples, warnings=texts)


@contextlib.contextmanager
def suppress_warnings(about: str = "") -> Iterator[None]:
    """Ignore sampling warnings that are expected, or checked otherwise.

    Args:
        about: A regular expression that those warnings contain, such as R-hat; by
            default all of them.
    """
    with warnings.catch_warnings():
        message = f"(?s).*{about}"
        warnings.filterwarnings("ignore", message=message, category=SamplingWarning)
        yield


@contextlib.contextmanager
def collect_warnings() -> Iterator[dict[str, None]]:
    """Collect the sampling warnings of the block, each text once, silently.

    The dictionary is filled when the block ends; other warnings pass through.
    """
    collected: dict[str, None] = {}
    others = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SamplingWarning)
        try:
            yield collected
        finally:
            for each in caught:
                if issubclass(each.category, SamplingWarning):
                    collected[str(each.message)] = None
                else:
                    others.append(each)
    for each in others:
        warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)


def _warnings_of_run(samples: Samples, start: np.ndarray) -> list[str]:
    """Return the warnings of one run."""
    end, history = np.asarray(samples.particles), samples.history
    found = [_drift(start, end)]
    if "undefined" in history:
        found.append(_undefined(history["undefined"]))
    if "acceptance" in history:
        rates = history["acceptance"]
        found.append(_stuck(start, end, rates, int(samples.num_steps)))
        if "particles" in history:
            found.append(_unmixed(history["particles"]))
    else:
        found.append(_still(start, end, int(samples.num_steps)))
    if isinstance(samples.state, ChainState) and samples.num_steps:
        found.append(_flat(end, np.asarray(samples.state.walkers.score)))
    if "weights" in samples.summary:
        found.append(_few_effective(np.asarray(samples.summary["weights"], float)))
    return [text for text in found if text]


def _stuck(
    start: np.ndarray, end: np.ndarray, rates: np.ndarray, num_steps: int
) -> str:
    """Warn of proposals that were hardly ever accepted."""
    if not len(rates) or num_steps < _FEW_STEPS:
        return ""
    rate, still = float(np.mean(rates[len(rates) // 2 :])), _num_still(start, end)
    if rate >= _ACCEPTANCE and 2 * still <= len(start):
        return ""
    return (
        f"only {rate:.2%} of the proposals were accepted in the second half of the "
        f"run, and {still} of {len(start)} particles stand where they began: these are "
        "not samples. Take a smaller step size, or let it adapt (`num_adapt`)."
    )


def _still(start: np.ndarray, end: np.ndarray, num_steps: int) -> str:
    """Warn of particles that no step has moved, of samplers that accept them all."""
    still = _num_still(start, end)
    if num_steps < _FEW_STEPS or 2 * still <= len(start):
        return ""
    return (
        f"{still} of {len(start)} particles stand exactly where they began: these are "
        "not samples. Take larger steps, or look at the gradient of `log_density`."
    )


def _num_still(start: np.ndarray, end: np.ndarray) -> int:
    """Return how many particles are where they began, to the last digit."""
    if start.shape != end.shape:
        return 0
    return int(np.sum(np.all(start == end, axis=tuple(range(1, start.ndim)))))


def _drift(start: np.ndarray, end: np.ndarray) -> str:
    """Warn of particles that went as far as if nothing held them."""
    reach = lambda x: float(np.sqrt(np.mean(np.square(x, dtype=np.float64))))
    before, after = reach(start), reach(end)
    if after <= _DRIFT * max(before, 1e-2):
        return ""
    return (
        f"the particles went from {before:.3g} from the origin to {after:.3g}, root "
        "mean square: has the density a finite integral? If so, begin nearer to where "
        "it is large."
    )


def _flat(end: np.ndarray, scores: np.ndarray) -> str:
    """Warn of particles that came to where nothing pulls them back."""
    zero = _num_unguided(end, scores)
    if not zero:
        return ""
    return (
        f"the gradient of `log_density` is exactly zero at {zero} of {len(scores)} "
        "particles at the end: they came to where the density is constant and walk "
        "at random, as the atoms of a cluster that evaporated do. Bound the density, "
        "as the `container` of `es.from_ase` does."
    )


def _num_unguided(particles: np.ndarray, scores: np.ndarray) -> int:
    """Return at how many particles the score is zero: most, in several places, or 0."""
    still = np.all(scores == 0, axis=tuple(range(1, scores.ndim)))
    zero = int(np.sum(still))
    several = np.any(particles[still] != particles[still][:1])
    return zero if 2 * zero > len(scores) and several else 0


def _undefined(counts: np.ndarray) -> str:
    """Warn of proposals at which the density was no number."""
    num = int(np.sum(counts))
    if not num:
        return ""
    return (
        f"`log_density` was NaN at {num} proposals in the {len(counts)} steps that "
        "were recorded, all of which were refused, as if it were zero there: smaller "
        "steps do not help. Return -inf where it is zero, and mend it elsewhere."
    )


def _unmixed(places: np.ndarray) -> str:
    """Warn of independent chains that are not where the others are, or creep."""
    draws = places[len(places) // 2 :]
    if len(draws) < _DRAWS or places.shape[1] < _CHAINS:
        return ""
    # Of a cloud, whose coordinates a symmetry may mix, only how wide it is.
    values = draws.reshape(*draws.shape[:2], -1)
    if draws.ndim > 3:
        centered = draws - draws.mean(axis=2, keepdims=True)
        values = np.sqrt(np.mean(centered**2, axis=tuple(range(2, draws.ndim))))
        values = values[..., None]
    chains = values.transpose(2, 1, 0)
    found = [split_r_hat(each) for each in chains]
    worst = max(found)
    if not worst > _R_HAT:
        return _few_draws(chains[int(np.argmax(found))])
    return (
        f"R-hat of the {places.shape[1]} chains that were kept is {worst:.2f} in the "
        "second half of the run: they are not where the others are. Take more steps, "
        "or a sampler that changes modes (`es.ParallelTempering`)."
    )


def _few_draws(chains: np.ndarray) -> str:
    """Warn of chains whose draws, one row each, are nearly alike."""
    between = np.var(np.mean(chains, axis=1, dtype=np.float64), ddof=1)
    effective = len(chains) * float(np.var(chains, dtype=np.float64)) / between
    if not effective < _INDEPENDENT * len(chains):
        return ""
    return (
        f"the {chains.size} draws of the {len(chains)} chains that were kept are worth "
        f"{effective:.1f} independent draws in the second half of the run: they move "
        "slowly. Take more steps, or a larger step size."
    )


def _few_effective(weights: np.ndarray) -> str:
    """Warn of weights that a few particles have nearly all of."""
    effective = float(np.sum(weights) ** 2 / np.sum(weights**2))
    if not math.isfinite(effective) or effective >= _EFFECTIVE * len(weights):
        return ""
    return (
        f"the weights of {len(weights)} particles are worth {effective:.1f} equal "
        "ones: take more particles, or more temperatures."
    )
