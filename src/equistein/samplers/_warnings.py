"""Reasons to distrust the samples of a run."""

import contextlib
import dataclasses
import warnings
from collections.abc import Iterator

import jax
import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

from equistein._check_arguments import check_finite_arguments
from equistein._types import LogDensity, Particles
from equistein.samplers._base import AbstractSampler
from equistein.samplers._evidence import path_warnings
from equistein.samplers._markov_chains import ChainState
from equistein.samplers._samples import Samples
from equistein.samplers._validation import callback_errors, CallbackError

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
    with warnings.catch_warnings():
        warnings.simplefilter("always", SamplingWarning)
        show = warnings.showwarning

        def collect(message, category, *where, **options):
            if issubclass(category, SamplingWarning):
                collected[str(message)] = None
            else:
                show(message, category, *where, **options)

        warnings.showwarning = collect
        yield collected


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
            f"`log_density` was NaN at {int(np.sum(undefined))} proposals in "
            f"{len(undefined)} recorded steps: return -inf where the density is zero, "
            "and mend it elsewhere."
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
