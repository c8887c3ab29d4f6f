"""Reasons to distrust log Z, or what a run along a path has covered."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import stdtrit

from equistein.samplers._annealed_smc import SMCState
from equistein.samplers._parallel_tempering import TemperingState
from equistein.samplers._samples import Samples

_ERRORS, _NATS = 3.0, 0.1  # by which the halves of a run may differ
_SPREAD = 1.0  # nats, of independent populations
_GROWTH = 2.0  # of a width in the last round
_NARROW = 2.5  # times as wide as the start is the target, everywhere
_REFUSED = 0.97  # of the swaps of a pair
_WIDE = 300.0  # widths of the start
_SHIFT, _CHANCE = 0.04, 1e-3  # of means; that a sound run is warned of


def path_warnings(samples: Samples, start: np.ndarray) -> Iterator[str]:
    """Yield the warnings of a run along a path to the target, from its start."""
    state, summary = samples.state, samples.summary
    if isinstance(state, SMCState):
        yield from _of_populations(summary)
        yield from _of_landing(state)
        yield from _of_width(np.asarray(samples.particles, float), start)
    elif isinstance(state, TemperingState):
        yield from _of_halves(summary)
        yield from _of_ladder(state, samples, start)


def _of_ladder(
    state: TemperingState, samples: Samples, start: np.ndarray
) -> Iterator[str]:
    """Warn of temperatures that do not swap, and of chains that still spread."""
    summary, particles = samples.summary, np.asarray(samples.particles, float)
    refused = float(np.max(summary["rejections"], initial=0))
    if refused > _REFUSED:
        yield (
            f"two neighboring temperatures refused {refused:.1%} of their swaps: take "
            "more `num_temperatures` or steps, or log Z and the modes are not known."
        )
    metric = state.parameters.metric
    if metric is None or int(state.step) < 2 * len(metric.growth):
        return
    growth = np.asarray(metric.growth, float)[0]
    factor = np.asarray(metric.factor)[0]
    most = int(np.argmax(growth))
    before = np.maximum(np.std(start, axis=0, dtype=float), 1e-30)
    if growth[most] > _GROWTH and int(state.num_adapt) >= _GROWTH:
        axis = factor[:, most] if factor.ndim > 1 else np.eye(len(growth))[most]
        yield (
            f"the particles still spread {growth[most]:.2g} times as wide in the last "
            f"round that adapted, along {direction(axis)}. Take more steps; if they "
            "never stop, the density has no finite integral."
        )
    elif "log_z" in summary and np.min(np.std(particles, axis=0) / before) > _NARROW:
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
