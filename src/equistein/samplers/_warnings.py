"""Reasons to distrust the samples of a run, its log Z, or what it covered."""

import contextlib
import dataclasses
import warnings
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from equistein._check_arguments import check_finite_arguments
from equistein._types import LogDensity, Particles
from equistein.samplers._annealed_smc import SMCState
from equistein.samplers._base import AbstractSampler
from equistein.samplers._geometric_path import FittedNormal
from equistein.samplers._markov_chains import ChainState
from equistein.samplers._parallel_tempering import TemperingState
from equistein.samplers._samples import Samples
from equistein.samplers._validation import callback_errors, CallbackError

_FEW_STEPS = 10  # that tell nothing
_ACCEPTANCE = 0.05
_DRIFT = 1e4  # times as far as the start
_R_HAT = 1.2
_CHAINS, _DRAWS = 4, 20  # that R-hat takes at least
_EFFECTIVE = 0.1  # of the particles
_INDEPENDENT = 8  # draws of a chain, at least
_ERRORS, _NATS = 3.0, 0.1  # by which the halves of a run may differ
_SPREAD = 1.0  # nats, of independent populations
_GROWTH = 2.0  # of a width in the last round
_NARROW = 2.5  # times as wide as the start is the target, everywhere
_REFUSED = 0.97  # of the swaps of a pair
_TRAPPED, _CHANCES = 4, 4.5  # times fewer round trips; standard deviations of a count
_LOST = 0.3  # nats that rounding of log densities takes
_WIDE = 300.0  # widths of the start
_SHIFT, _CHANCE = 0.04, 1e-3  # of means; that a sound run is warned of


class SamplingWarning(RuntimeWarning):
    """A run ended, but there is a reason to distrust its samples."""


def warn_of_samples(text: str, stacklevel: int = 2) -> None:
    """Issue a `SamplingWarning`, of the line that `stacklevel` names."""
    warnings.warn(text, SamplingWarning, stacklevel=stacklevel + 1)


def symmetry_warnings(
    sampler: AbstractSampler, log_density: LogDensity, final: Particles
) -> tuple[str, ...]:
    """Return a warning if what the sampler relies on is lost where particles ended."""
    try:
        with callback_errors():
            sampler.check(log_density, final)
    except CallbackError:
        raise
    except ValueError as error:  # of an InvarianceError, without point and element
        return (
            "the density suits the sampler where the particles began, not where they "
            f"ended: {str(error).partition(': at the point')[0]}. They may sample "
            "another density.",
        )
    return ()


def issue_warnings(
    samples: Samples, start: np.ndarray, known: tuple[str, ...], name: str
) -> Samples:
    """Issue the `known` warnings and those of the samples; return samples with them."""
    if isinstance(samples.num_steps, np.ndarray):
        lines: dict[str, list[str]] = {}
        on_host = jax.device_get(samples)
        for index, first in enumerate(start):
            for text in _warnings_of_run(on_host[index], first):
                lines.setdefault(text, []).append(str(index))
        new = [f"in run {', '.join(runs)}: {text}" for text, runs in lines.items()]
    else:
        new = list(_warnings_of_run(samples, start))
    texts = tuple(f"{name}: {text}" for text in (*known, *new))
    for text in texts:
        warn_of_samples(text, stacklevel=4)  # the line that calls `run`
    return dataclasses.replace(samples, warnings=texts)


@contextlib.contextmanager
def suppress_warnings(about: str = "") -> Iterator[None]:
    """Ignore sampling warnings that contain a regular expression, such as R-hat."""
    with warnings.catch_warnings():
        message = f"(?s).*{about}"
        warnings.filterwarnings("ignore", message=message, category=SamplingWarning)
        yield


@contextlib.contextmanager
def collect_warnings() -> Iterator[dict[str, None]]:
    """Collect the sampling warnings of the block, each text once, silently."""
    collected: dict[str, None] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SamplingWarning)
        yield collected
    for each in caught:
        if issubclass(each.category, SamplingWarning):
            collected[str(each.message)] = None
        else:
            where = each.filename, each.lineno
            warnings.warn_explicit(each.message, each.category, *where)


def _warnings_of_run(samples: Samples, start: np.ndarray) -> Iterator[str]:
    """Yield the warnings of one run."""
    end, history = np.asarray(samples.particles), samples.history
    reach = lambda x: float(np.sqrt(np.mean(np.square(x, dtype=np.float64))))
    if reach(end) > _DRIFT * max(reach(start), 1e-2):
        yield (
            "the particles' root mean square distance from the origin grew from "
            f"{reach(start):.3g} to {reach(end):.3g}: is the integral of the density "
            "finite? If so, start nearer to where it is large."
        )
    undefined = history.get("undefined", np.zeros(0))
    if np.any(undefined):
        yield (
            f"`log_density` was NaN or inf at {int(np.sum(undefined))} proposals in "
            f"{len(undefined)} recorded steps: return -inf where the density is zero, "
            "and mend it elsewhere."
        )
    lost = float(np.spacing(np.abs(history.get("log_density", np.zeros(1))[-1])))
    if lost > _LOST and "acceptance" in history:
        yield (
            f"the log density is rounded to {lost:.2g}: compute in double precision "
            "(`jax_enable_x64`), or subtract a constant."
        )
    if samples.num_steps >= _FEW_STEPS and start.shape == end.shape:
        yield from _of_still(start, end, history)
    if "acceptance" in history and "particles" in history:
        yield from _of_mixing(history["particles"])
    if isinstance(samples.state, ChainState) and samples.num_steps:
        reason = (
            "they came to where the density is constant and walk at random. Bound the "
            "density, as the `container` of `es.from_ase` does."
        )
        scores = np.asarray(samples.state.walkers.score)
        yield from unguided_warning(end, scores, "at the end", reason)
    if samples.num_steps >= _FEW_STEPS:
        yield from path_warnings(samples, start)
    if "weights" in samples.summary:
        yield from _of_weights(np.asarray(samples.summary["weights"], float))


def _of_still(start: np.ndarray, end: np.ndarray, history: dict) -> Iterator[str]:
    """Warn of particles that have not moved, or hardly ever."""
    still = int(np.sum(np.all(start == end, axis=tuple(range(1, start.ndim)))))
    rates = history.get("acceptance", np.ones(1))
    rate = float(np.mean(rates[len(rates) // 2 :]))
    text = f"{still} of {len(start)} particles stand exactly where they began"
    if not rate >= _ACCEPTANCE:
        text = f"only {rate:.2%} of proposals were accepted in the second half; {text}"
    elif 2 * still <= len(start):
        return
    adapt = ", or let it adapt (`num_adapt`)" if "acceptance" in history else ""
    yield f"{text}: these are not samples. Take another step size{adapt}."


def unguided_warning(
    particles: np.ndarray, scores: np.ndarray, when: str, reason: str
) -> Iterator[str]:
    """Warn if most scores, in several places, are zero."""
    flat = np.all(scores == 0, axis=tuple(range(1, scores.ndim)))
    zero, places = int(np.sum(flat)), particles[flat]
    if 2 * zero > len(scores) and np.any(places != places[:1]):
        yield (
            f"the gradient of `log_density` is exactly zero at {zero} of {len(scores)} "
            f"particles {when}: {reason}"
        )


def _of_mixing(places: np.ndarray) -> Iterator[str]:
    """Warn of chains that are not where the others are, or creep."""
    draws = places[len(places) // 2 :]
    if len(draws) < _DRAWS or places.shape[1] < _CHAINS:
        return
    # Of a cloud, whose coordinates a symmetry may mix, only how wide it is.
    values = draws.reshape(*draws.shape[:2], -1)
    if draws.ndim > 3:
        gaps, axes = draws - draws.mean(axis=2, keepdims=True), (*range(2, draws.ndim),)
        values = np.sqrt(np.mean(gaps**2, axis=axes))[..., None]
    chains = max(values.transpose(2, 1, 0), key=split_r_hat)
    name, r_hat = f"{len(chains)} chains that were kept", split_r_hat(chains)
    between = np.var(np.mean(chains, axis=1, dtype=np.float64), ddof=1)
    if r_hat > _R_HAT:
        yield (
            f"R-hat of the {name} is {r_hat:.2f} in the second half of the run: they "
            "are not where the others are. Take more steps, or a sampler that changes "
            "modes (`es.ParallelTempering`)."
        )
    elif np.var(chains, dtype=np.float64) < _INDEPENDENT * between:
        effective = len(chains) * float(np.var(chains, dtype=np.float64)) / between
        yield (
            f"the {chains.size} draws of the {name} are worth {effective:.1f} "
            "independent draws in the second half of the run: they move slowly. Take "
            "more steps, or a larger step size."
        )


def _of_weights(weights: np.ndarray) -> Iterator[str]:
    """Warn of weights that a few particles have nearly all of."""
    effective = float(np.sum(weights) ** 2 / np.sum(weights**2))
    if np.isfinite(effective) and effective < _EFFECTIVE * len(weights):
        yield (
            f"the weights of {len(weights)} particles are worth {effective:.1f} equal "
            "ones: take more particles, or more temperatures."
        )


@check_finite_arguments
def split_r_hat(values: Float[np.ndarray, "chain draw"]) -> float:
    r"""The rank-normalized split R-hat of chains, of the numbers or folded ones.

    $$\hat R = \sqrt{\frac{n - 1}{n} + \frac{B}{n W}}$$

    for halves of n draws, whose normal scores have mean variance W and means of
    variance B / n: near 1 where all draw alike, infinite if each stands elsewhere.

    References:
        Vehtari et al. (2021), Rank-normalization, folding, and localization.
    """
    from scipy.special import ndtri  # a tenth of a second, which few runs need

    n = values.shape[1] // 2
    halves = np.concatenate([values[:, :n], values[:, -n:]]).astype(float)

    def reduction(x: np.ndarray) -> float:
        _, place, counts = np.unique(x, return_inverse=True, return_counts=True)
        ranks = (np.cumsum(counts) - (counts - 1) / 2)[place].reshape(x.shape)
        scores = ndtri((ranks - 0.375) / (x.size + 0.25))
        within = np.mean(np.var(scores, axis=1, ddof=1))
        between = np.var(np.mean(scores, axis=1), ddof=1)
        if within == 0:  # 1 if all stand still in one place
            return 1.0 if between == 0 else float("inf")
        return float(np.sqrt((n - 1) / n + between / within))

    return max(map(reduction, (halves, abs(halves - np.median(halves)))))


def path_warnings(samples: Samples, start: np.ndarray) -> Iterator[str]:
    """Yield the warnings of a run along a path to the target, from its start."""
    state, summary, ends = samples.state, samples.summary, samples.particles
    periods = getattr(getattr(state, "reference", None), "periods", None)
    if periods is not None:  # windings are no distance
        wraps, periods = np.isfinite(periods), np.asarray(periods)
        start, ends = (np.where(wraps, np.mod(x, periods), x) for x in (start, ends))
    ends = np.asarray(ends, float)
    if isinstance(state, SMCState):
        yield from _of_populations(summary)
        yield from _of_landing(state)
        yield from _of_width(ends, start)
        if isinstance(state.reference, FittedNormal):
            yield from _of_narrow(ends, start)
    elif isinstance(state, TemperingState):
        yield from _of_halves(summary)
        yield from _of_ladder(state, summary, ends, start)


def _of_ladder(
    state: TemperingState, summary: dict, particles: np.ndarray, start: np.ndarray
) -> Iterator[str]:
    """Warn of temperatures that do not swap, and of chains that still spread."""
    refused = float(np.max(summary["rejections"], initial=0))
    if refused > _REFUSED:
        yield (
            f"two neighboring temperatures refused {refused:.1%} of their swaps: take "
            "more `num_temperatures` or steps, or log Z and the modes are not known."
        )
    trips = np.asarray(state.replicas.round_trips)
    least, most = int(np.min(trips)), float(np.median(trips))
    if least < min(most / _TRAPPED, most - _CHANCES * most**0.5):
        yield (
            f"a chain made {least} round trips through the temperatures, where half "
            f"made {most:.0f}: it is trapped, as in a narrow mode or a far tail, whose "
            "weight is not known, nor log Z. Take more steps, and compare two runs."
        )
    metric = state.parameters.metric
    if metric is None or int(state.step) < 2 * len(metric.growth):
        return
    growth = np.asarray(metric.growth, float)[0]
    factor = np.asarray(metric.factor)[0]
    most = int(np.argmax(growth))
    if growth[most] > _GROWTH and int(state.num_adapt) >= _GROWTH:
        axis = factor[:, most] if factor.ndim > 1 else np.eye(len(growth))[most]
        yield (
            f"the particles still spread {growth[most]:.2g} times as wide in the last "
            f"round that adapted, along {direction(axis)}. Take more steps; if they "
            "never stop, the density has no finite integral."
        )
    elif "log_z" in summary:
        yield from _of_narrow(particles, start)


def _of_narrow(particles: np.ndarray, start: np.ndarray) -> Iterator[str]:
    """Warn of particles that are wider than the start along every coordinate."""
    before = np.maximum(np.std(start, axis=0, dtype=float), 1e-30)
    if np.min(np.std(particles, axis=0) / before) > _NARROW:
        yield (
            f"the particles began in a place less than 1/{_NARROW} as wide as where "
            "they ended, along every coordinate: modes far from the start are not "
            "found. Start wider, and compare two starts."
        )


def _of_halves(summary: dict[str, Any]) -> Iterator[str]:
    """Warn if the halves of a run have another log Z each."""
    halves = np.asarray(summary.get("log_z_of_halves", (np.nan, np.nan)), float)
    half = abs(halves[1] - halves[0]) / 2
    jackknife = float(summary.get("log_z_jackknife", np.nan))
    if half > max(_ERRORS * jackknife, _NATS) or _SPREAD < jackknife < np.inf:
        yield (
            f"the halves of the run have log Z of {halves[0]:.3f} and {halves[1]:.3f}, "
            f"the chains together an error of {jackknife:.2g}: it has not settled. "
            "Take more steps."
        )


def _of_populations(summary: dict[str, Any]) -> Iterator[str]:
    """Warn if populations disagree, or did not reach the target."""
    each = np.asarray(summary["log_z_of_runs"], float)
    if len(each) > 1 and np.std(each, ddof=1) > _SPREAD:
        yield (
            f"the populations have log Z from {each.min():.2f} to {each.max():.2f}: "
            "take more particles, or `es.ParallelTempering()`."
        )
    least = float(np.min(summary["inverse_temperatures"]))
    if least < 1:
        yield (
            f"the steps ran out at the inverse temperature {least:.3g}, before the "
            "target: the particles and log Z are of a hotter density. Take more steps."
        )


def _of_landing(state: SMCState) -> Iterator[str]:
    """Warn if the particles moved on after they reached the target."""
    from scipy.special import stdtrit

    runs = len(state.log_normalizers)
    first, last = (
        np.asarray(x, float).reshape(runs, len(x) // runs, -1)
        for x in (state.landed, state.particles)
    )
    if runs < 3 or not np.all(np.isfinite(first)):
        return
    center, width = last.mean(axis=(0, 1)), np.maximum(last.std(axis=(0, 1)), 1e-30)
    z = [(x - center) / width for x in (first, last)]
    shifts = np.stack([z[1] - z[0], z[1] ** 2 - z[0] ** 2]).mean(axis=2)  # 2, run, dim
    mean, spread = shifts.mean(axis=1), shifts.std(axis=1, ddof=1) / runs**0.5
    limit = stdtrit(runs - 1, 1 - _CHANCE / (2 * mean.size))  # of either sign
    moved = (np.abs(mean) > limit * spread) & (np.abs(mean) > _SHIFT)
    index = int(np.argmax(np.max(np.abs(mean) * moved, axis=0)))
    if np.any(moved):
        yield (
            "after they had reached the target, the particles moved on: the mean of "
            f"coordinate {index} by {mean[0, index]:+.2f} of its spread, the mean "
            f"square by {mean[1, index]:+.2f}. They, and log Z, were not settled. Take "
            "more particles, or `es.ParallelTempering()`."
        )


def _of_width(particles: np.ndarray, start: np.ndarray) -> Iterator[str]:
    """Warn of particles far wider than the start, with the direction."""
    widths = start.std(axis=0)
    if particles.ndim != 2 or len(particles) < 2 or not widths.all():
        return
    gaps = (particles - particles.mean(axis=0)) / np.maximum(widths, 1e-30)
    values, axes = np.linalg.eigh(gaps.T @ gaps / len(gaps))
    if values[-1] > _WIDE**2:
        yield (
            f"the particles are {values[-1] ** 0.5:.3g} times as wide as the start, "
            f"along {direction(axes[:, -1] * widths)}: start wider; if they never "
            "stop, the density has no finite integral."
        )


def direction(axis: np.ndarray) -> str:
    """Return text for a direction: its largest parts, such as 0.71 x[0] - 0.71 x[1]."""
    axis = axis / np.linalg.norm(axis)
    largest = [i for i in np.argsort(-np.abs(axis))[:3] if abs(axis[i]) > 0.1]
    sign = np.sign(axis[largest[0]])
    parts = [f"{sign * axis[i]:+.2f} x[{i}]" for i in largest]
    return " ".join(parts).removeprefix("+")
