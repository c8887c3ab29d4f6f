"""Reasons to distrust log Z, or what a run along a path has covered."""

from typing import Any

import numpy as np
from scipy.special import stdtrit

from equistein.samplers._annealed_smc import SMCState
from equistein.samplers._parallel_tempering import TemperingState
from equistein.samplers._samples import Samples

_ERRORS, _NATS = 3.0, 0.1  # by which the halves of a run may differ
_SPREAD = 1.0  # nats, of independent populations
_GROWTH = 1.75  # of a width in the last round
_NARROW = 2.5  # times as wide as the start is the target, everywhere
_REFUSED = 0.97  # of the swaps of a pair
_WIDE = 300.0  # widths of the start
_SHIFT, _CHANCE = 0.04, 1e-3  # of means; that a sound run is warned of


def path_warnings(samples: Samples, start: np.ndarray) -> list[str]:
    """Return the warnings of a run along a path to the target, from its start."""
    state, summary = samples.state, samples.summary
    if isinstance(state, SMCState):
        found = _of_populations(summary)
        found += _of_landing(state)
        return found + _of_width(np.asarray(samples.particles, float), start)
    if not isinstance(state, TemperingState):
        return []
    found = _of_halves(summary)
    refused = float(np.max(summary["rejections"], initial=0))
    if refused > _REFUSED:
        found.append(
            f"two neighboring temperatures refused {refused:.1%} of their swaps: take "
            "more `num_temperatures` or steps, or log Z and the modes are not known."
        )
    metric = state.parameters.metric
    if metric is None or int(state.step) < 2 * len(metric.growth):
        return found
    growth = np.asarray(metric.growth, float)[0]
    factor = np.asarray(metric.factor)[0]
    most = int(np.argmax(growth))
    if growth[most] > _GROWTH and int(state.num_adapt) >= _GROWTH:
        axis = factor[:, most] if factor.ndim > 1 else np.eye(len(growth))[most]
        found.append(
            f"the particles still spread {growth[most]:.2g} times as wide in the last "
            f"round that adapted, along {direction(axis)}. Take more steps; if they "
            "never stop, the density has no finite integral."
        )
    elif "log_z" in summary and _growth(samples, start) > _NARROW:
        found.append(
            f"the particles began in a place less than 1/{_NARROW} as wide as where "
            "they ended, along every coordinate: modes far from the start are not "
            "found. Start wider, and compare two starts."
        )
    return found


def _of_halves(summary: dict[str, Any]) -> list[str]:
    """Return a warning if the halves of a run have another log Z each."""
    halves = np.asarray(summary.get("log_z_of_halves", (np.nan, np.nan)), float)
    half = abs(halves[1] - halves[0]) / 2
    jackknife = float(summary.get("log_z_jackknife", np.nan))
    if not (half > max(_ERRORS * jackknife, _NATS) or _SPREAD < jackknife < np.inf):
        return []
    return [
        f"the halves of the run have log Z of {halves[0]:.3f} and {halves[1]:.3f}, the "
        f"chains together an error of {jackknife:.2g}: it has not settled. Take more "
        "steps."
    ]


def _of_populations(summary: dict[str, Any]) -> list[str]:
    """Return warnings if populations disagree, or did not reach the target."""
    each, found = np.asarray(summary["log_z_of_runs"], float), []
    if len(each) > 1 and np.std(each, ddof=1) > _SPREAD:
        found.append(
            f"the populations have log Z from {each.min():.2f} to {each.max():.2f}: "
            "take more particles, or `es.ParallelTempering()`."
        )
    least = float(np.min(summary["inverse_temperatures"]))
    if least < 1:
        found.append(
            f"the steps ran out at the inverse temperature {least:.3g}, before the "
            "target: the particles and log Z are of a hotter density. Take more steps."
        )
    return found


def _of_landing(state: SMCState) -> list[str]:
    """Return a warning if the particles moved on after they reached the target."""
    runs = len(state.log_normalizers)
    first, last = (
        np.asarray(x, float).reshape(runs, len(x) // runs, -1)
        for x in (state.landed, state.particles)
    )
    if runs < 3 or not np.all(np.isfinite(first)):
        return []
    center, width = last.mean(axis=(0, 1)), np.maximum(last.std(axis=(0, 1)), 1e-30)
    z = [(x - center) / width for x in (first, last)]
    shifts = np.stack([z[1] - z[0], z[1] ** 2 - z[0] ** 2]).mean(axis=2)  # 2, run, dim
    mean, spread = shifts.mean(axis=1), shifts.std(axis=1, ddof=1) / runs**0.5
    limit = stdtrit(runs - 1, 1 - _CHANCE / mean.size)
    moved = (np.abs(mean) > limit * spread) & (np.abs(mean) > _SHIFT)
    if not np.any(moved):
        return []
    index = int(np.argmax(np.max(np.abs(mean) * moved, axis=0)))
    return [
        "after they had reached the target, the particles moved on: the mean of "
        f"coordinate {index} by {mean[0, index]:+.2f} of its spread, the mean square "
        f"by {mean[1, index]:+.2f}. They, and log Z, were not settled. Take more "
        "particles, or `es.ParallelTempering()`."
    ]


def _of_width(particles: np.ndarray, start: np.ndarray) -> list[str]:
    """Return a warning of particles far wider than the start, with the direction."""
    if particles.ndim != 2 or len(particles) < 2 or not start.std(axis=0).all():
        return []
    gaps = (particles - particles.mean(axis=0)) / np.maximum(start.std(axis=0), 1e-30)
    values, axes = np.linalg.eigh(gaps.T @ gaps / len(gaps))
    if not values[-1] > _WIDE**2:
        return []
    axis = axes[:, -1] * start.std(axis=0)
    return [
        f"the particles are {values[-1] ** 0.5:.3g} times as wide as the start, along "
        f"{direction(axis)}: start wider; if they never stop, the density has no "
        "finite integral."
    ]


def _growth(samples: Samples, start: np.ndarray) -> float:
    """Return how much wider than the start the particles are, at least."""
    before = np.maximum(np.std(start, axis=0, dtype=float), 1e-30)
    return float(
        np.min(np.std(np.asarray(samples.particles), axis=0, dtype=float) / before)
    )


def direction(axis: np.ndarray) -> str:
    """Return text for a direction: its largest parts, such as 0.71 x[0] - 0.71 x[1]."""
    axis = axis / np.linalg.norm(axis)
    largest = [i for i in np.argsort(-np.abs(axis))[:3] if abs(axis[i]) > 0.1]
    sign = np.sign(axis[largest[0]])
    parts = [f"{sign * axis[i]:+.2f} x[{i}]" for i in largest]
    return " ".join(parts).removeprefix("+")
