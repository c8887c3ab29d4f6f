"""What a fit of a user's data is judged by: numbers, samples, pictures."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein._gate import gate
from equistein._types import Key, Particles
from equistein.features import Coordinates
from equistein.metrics import energy_distance, wasserstein_1d
from equistein.models._dataset import Dataset
from equistein.models._energies_and_forces import force_errors
from equistein.models._features import features_of
from equistein.models._molecules import report_molecules
from equistein.models._scores import scores
from equistein.models._values import values_at
from equistein.runs import FLOOR, Outcome, seed_outcome, WARNING
from equistein.samplers import collect_warnings, warn_of_samples
from equistein.training import Fitted

_KNOWN = 5_000  # molecules of the data that new ones are compared with
_SHOWN_CLASSES = 4
_SHOWN_COLUMNS = 12
_SAMPLES_OF_CLASS = 128


@gate
@dataclasses.dataclass(frozen=True)
class Judgement:
    """What a learned density was found to be.

    Attributes:
        outcomes: Numbers, samples and history of the `model`, and those of the floor:
            one half of the data, compared with the other as the samples are.
        figures: Pictures by name.
    """

    outcomes: Mapping[str, Outcome]
    figures: Mapping[str, Any]


@gate
def judge(
    key: Key,
    fitted: Fitted,
    dataset: Dataset,
    *,
    num_samples: int = 512,
    ais_steps: int = 1_000,
    progress: bool = False,
) -> Judgement:
    """Draw samples of a learned density, and compare them with its data.

    Args:
        key: The source of randomness.
        fitted: The learned density.
        dataset: What it was fitted to.
        num_samples: The number of samples.
        ais_steps: The temperatures of the annealed importance sampling of log Z.
        progress: Whether to show a progress bar.
    """
    from equistein.models._figures import figures  # matplotlib is not always needed

    sample_key, score_key, class_key, split_key, turn_key = jr.split(key, 5)
    with collect_warnings() as reasons:
        samples = fitted.sample(sample_key, num_samples, progress=progress)
    for text in reasons:
        warn_of_samples(text)
    warned = [{"event": WARNING, "text": text} for text in reasons]
    data = jax.vmap(fitted.group.project)(dataset.points)
    described = _description(turn_key, fitted)
    split = jr.permutation(split_key, len(data))
    half = len(data) // 2
    others = data[split[half:]] if half else data
    first = data[split[:half]] if half else data
    # The same numbers of points on both sides, so that the rows can be compared.
    num = min(len(first), len(samples))
    numbers = _compared(fitted, described, samples[:num], others)
    numbers |= scores(score_key, fitted, dataset, ais_steps)
    numbers |= force_errors(fitted, dataset)
    floor, panels = _compared(fitted, described, first[:num], others), {}
    if dataset.species is not None:
        report = report_molecules(
            dataset.species, np.asarray(data[:_KNOWN]), np.asarray(samples)
        )
        numbers, floor, panels = (
            numbers | report.numbers,
            floor | report.floor,
            report.panels,
        )
    outcomes = {
        "model": seed_outcome(
            numbers, samples, history=fitted.history, events=[*fitted.events, *warned]
        ),
        FLOOR: seed_outcome(floor, first[:num]),
    }
    if dataset.columns is not None:
        panels = _panels(dataset.columns, np.asarray(data), np.asarray(samples))
    pictures = figures(
        fitted.group,
        features=(described(data), described(samples)),
        points=(np.asarray(data), np.asarray(samples)),
        by_class=_of_classes(class_key, fitted, dataset, num_samples),
        history=outcomes["model"].history,
        species=dataset.species,
        panels=panels,
    )
    return Judgement(outcomes, pictures)


def _description(key: Key, fitted: Fitted) -> Callable[[Particles], Array]:
    """Return what describes points: their invariant features.

    Coordinates tell orientations apart, so each point is moved at random before.
    """
    features, group = features_of(fitted.energy), fitted.group
    described = jax.jit(jax.vmap(features))
    if not isinstance(features, Coordinates):
        return described

    def of_moved(points):
        elements = group.sample(key, len(points))
        return described(jax.vmap(group.act)(elements, points))

    return of_moved


def _compared(
    fitted: Fitted, described, points: Particles, against: Float[Array, "other *shape"]
) -> dict[str, float]:
    """Return how far points are from others, in their invariant features."""
    mine, other = described(points), described(against)
    gaps = [wasserstein_1d(a, b) for a, b in zip(mine.T, other.T, strict=True)]
    energies = values_at(fitted.energy, points)
    numbers = {
        "energy_distance_of_features": energy_distance(mine, other),
        "w1_of_a_feature": np.mean(np.array(gaps)),
        "median_model_energy": jnp.median(energies),
    }
    return {name: float(value) for name, value in numbers.items()}


def _panels(
    columns: Sequence[str], data: np.ndarray, samples: np.ndarray
) -> dict[str, dict[str, np.ndarray]]:
    """Return the first columns of a table and of its samples, by their names."""
    rows = [points.reshape(len(points), -1) for points in (data, samples)]
    return {
        name: {"data": rows[0][:, i], "samples": rows[1][:, i]}
        for i, name in enumerate(columns[:_SHOWN_COLUMNS])
    }


def _of_classes(
    key: Key, fitted: Fitted, dataset: Dataset, num_samples: int
) -> dict[str, np.ndarray]:
    """Return samples of each class, of the first few."""
    found = {}
    for label in range(min(dataset.num_classes or 0, _SHOWN_CLASSES)):
        num = min(num_samples, _SAMPLES_OF_CLASS)
        drawn = fitted.sample(jr.fold_in(key, label), num, label=label)
        name = dataset.classes[label] if dataset.classes else f"class {label}"
        found[name] = np.asarray(drawn)
    return found
