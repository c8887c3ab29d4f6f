"""What a fit of the user's data leaves: numbers, samples, pictures."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein._types import Key, Particles
from equistein.cli._dataset import Dataset, Problem
from equistein.cli._molecule_results import (
    molecule_numbers,
    molecule_pictures,
)
from equistein.energies import (
    AbstractEnergy,
    JointEnergy,
    NoiseEnergy,
    outlier_scores,
    PlainEnergy,
)
from equistein.features import AbstractFeatures, Coordinates, PairHistogram
from equistein.groups import AbstractGroup, ImageRotations
from equistein.metrics import (
    accuracy,
    auroc,
    energy_distance,
    expected_calibration_error,
    wasserstein_1d,
)
from equistein.networks import EGNN, FeatureNetwork
from equistein.plotting import (
    configurations,
    curves,
    histograms,
    image_rows,
    planar_samples,
)
from equistein.runs import FLOOR, Outcome, RunFolder, write_figures, write_results
from equistein.training import Box, denoising_score_matching, Fitted, noise_levels

_SHOWN_CLASSES = 4
_DENOISED = 512  # points to judge denoising by


def finish(
    key: Key, folder: RunFolder, problem: Problem, fitted: Fitted, dataset: Dataset
) -> None:
    """Draw samples, measure them and the model, and write what a fit gave."""
    sample_key, judge_key, class_key = jr.split(key, 3)
    print(f"Drawing {problem.num_samples} samples ...", flush=True)
    samples = fitted.sample(sample_key, problem.num_samples, progress=True)
    by_class = {}
    for label in range(min(dataset.num_classes or 0, _SHOWN_CLASSES)):
        drawn = fitted.sample(
            jr.fold_in(class_key, label), min(problem.num_samples, 128), label=label
        )
        by_class[f"class {label}"] = np.asarray(drawn)
    features = features_of(fitted.energy)
    group = fitted.start.group
    data = jax.vmap(group.project)(dataset.points)
    described = jax.jit(jax.vmap(features))
    if isinstance(features, Coordinates):
        # Samples come in all orientations, and coordinates tell them apart.
        described = _moved_at_random(described, group)
    split = jr.permutation(jr.key(problem.seed), len(data))
    half = len(data) // 2
    others = data[split[half:]] if half else data
    first = data[split[:half]] if half else data
    # The same numbers of points on both sides, so that the rows can be compared.
    num = min(len(first), len(samples))
    history = {k: v[None] for k, v in fitted.history.items() if k != "epoch"}
    history["step"] = fitted.history["epoch"][None]

    def outcome(points, against) -> Outcome:
        return Outcome(
            metrics=_compared(fitted, described, points, against),
            samples=np.asarray(points),
        )

    model = outcome(samples[:num], others)
    print("Measuring ...", flush=True)
    scores, species = {}, dataset.species
    if species is not None:
        found = molecule_numbers(species, np.asarray(data), np.asarray(samples))
        scores = {name: np.array([value]) for name, value in found.items()}
    outcomes = {
        "model": dataclasses.replace(
            model,
            metrics=model.metrics
            | judge(judge_key, fitted, dataset, problem.ais_steps)
            | scores,
            samples=np.asarray(samples),
            history=history,
            events=fitted.events,
        ),
        FLOOR: outcome(first[:num], others),
    }
    write_results(folder, outcomes, [problem.seed])
    figures = {
        "features": histograms(
            {
                "data": np.ravel(described(data)),
                "samples": np.ravel(described(samples)),
            },
            None,
            "invariant features, all together",
        )
    }
    if "negative_energy" in history:
        gap = history["positive_energy"] - history["negative_energy"]
        figures["energy_gap"] = curves(
            {"data minus particles": (history["step"][0], gap)},
            "energy gap",
            exact=0.0,
            x_label="epoch",
        )
    if "score_matching_loss" in history and "energy_gap" not in figures:
        loss = (history["step"][0], history["score_matching_loss"])
        figures["denoising_loss"] = curves(
            {"denoising": loss}, "loss", x_label="epoch", log_y=True
        )
    if species is not None:
        figures |= molecule_pictures(species, np.asarray(samples))
    else:
        figures |= pictures(group, np.asarray(data), np.asarray(samples), by_class)
    write_figures(folder, figures)


def judge(
    key: Key, fitted: Fitted, dataset: Dataset, num_steps: int
) -> dict[str, np.ndarray]:
    """Return the log-likelihood of held-out points, AUROC, accuracy and calibration.

    An energy of all levels of noise is judged by the loss it was trained with.
    """
    if isinstance(fitted.energy, NoiseEnergy):
        return _denoising(key, fitted, dataset)
    normalizer_key, box_key = jr.split(key)
    normalizer = fitted.log_normalizer(
        normalizer_key, num_particles=256, num_steps=num_steps
    )
    train, held_out = dataset.train(), dataset.held_out()
    numbers: dict[str, Any] = {
        "rollbacks": len(fitted.events),
        "log_normalizer": normalizer.value,
        "log_normalizer_error": normalizer.error,
        "ais_effective_sample_size": normalizer.effective_sample_size,
        "train_log_likelihood": jnp.mean(
            fitted.log_likelihood(train.points, normalizer)
        ),
    }
    if len(held_out.points):
        points = jax.vmap(fitted.start.group.project)(held_out.points)
        numbers["held_out_log_likelihood"] = jnp.mean(
            fitted.log_likelihood(points, normalizer)
        )
        box = Box(train.points, fitted.start.group).sample(box_key, 1_000)
        inside = outlier_scores(fitted.energy, points)
        outside = outlier_scores(fitted.energy, box)
        for name, values in inside.items():
            numbers[f"auroc_by_{name}"] = auroc(values, outside[name])
    energy = fitted.energy
    if held_out.labels is not None and isinstance(energy, JointEnergy):
        known = held_out.labels >= 0
        if known.any():
            labels = jnp.asarray(held_out.labels[known])
            points = held_out.points[known]
            logits = jax.lax.map(energy.logits, points, batch_size=256)
            numbers["held_out_accuracy"] = accuracy(logits, labels)
            numbers["calibration_error"] = expected_calibration_error(logits, labels)
            numbers["num_held_out_labels"] = known.sum()
    return {name: np.array([float(value)]) for name, value in numbers.items()}


def _denoising(key: Key, fitted: Fitted, dataset: Dataset) -> dict[str, np.ndarray]:
    """Return the loss of denoising, on the training data and on those held out."""
    energy, group = fitted.energy, fitted.start.group
    assert isinstance(energy, NoiseEnergy)
    numbers = {"rollbacks": float(len(fitted.events))}
    parts = {"train": dataset.train().points, "held_out": dataset.held_out().points}
    for name, points in parts.items():
        if len(points):
            repeats = -(-_DENOISED // len(points))
            some = jnp.concatenate([jax.vmap(group.project)(points)] * repeats)
            order_key, level_key, noise_key = jr.split(key, 3)
            some = jr.permutation(order_key, some)[:_DENOISED]
            noise = noise_levels(level_key, energy, len(some))
            loss = denoising_score_matching(noise_key, energy, some, noise, group)
            numbers[f"{name}_denoising_loss"] = float(loss)
    return {name: np.array([value]) for name, value in numbers.items()}


def pictures(
    group: AbstractGroup,
    data: np.ndarray,
    samples: np.ndarray,
    by_class: dict[str, np.ndarray],
) -> dict:
    """Draw the points themselves, where they are images, planar or small clouds."""
    if isinstance(group, ImageRotations):
        rows = {"data": data, "samples": samples, **by_class}
        limits = (float(np.quantile(data, 0.001)), float(np.quantile(data, 0.999)))
        shown = {
            name: images[:12].reshape(*images[:12].shape[:3], -1)[..., :1]
            for name, images in rows.items()
        }
        return {"samples": image_rows(shown, limits=limits)}
    reach = float(np.quantile(np.abs(data), 0.999)) * 1.25
    if data.ndim == 2 and data.shape[1] == 2:
        shown = {"data": data, "samples": samples, **by_class}
        views = {name: (points,) for name, points in shown.items()}
        return {"samples": planar_samples(views, ("",), None, reach)}
    if data.ndim == 3 and data.shape[2] >= 2:
        pick = np.linspace(0, len(data) - 1, 10).astype(int)
        rows = {"data": data[pick], "samples": samples[:10]}
        return {"configurations": configurations(rows, reach)}
    return {}


def features_of(energy: AbstractEnergy) -> AbstractFeatures:
    """Return the features in which samples are compared with data."""
    if isinstance(energy, NoiseEnergy) and isinstance(energy.network, EGNN):
        reach = float(energy.network.reach)
        return PairHistogram(energy.network.species, reach=reach, epsilon=1e-3 * reach)
    if isinstance(energy, PlainEnergy | JointEnergy):
        network = energy.network
        if isinstance(network, FeatureNetwork):
            return network.features
    return Coordinates()


def _moved_at_random(described: Callable, group: AbstractGroup) -> Callable:
    """Return a description of points that a random element has moved before."""

    def of_moved(points):
        elements = group.sample(jr.key(len(points)), len(points))
        return described(jax.vmap(group.act)(elements, points))

    return of_moved


def _compared(
    fitted: Fitted, described, points: Particles, against: Float[Array, "other *shape"]
) -> dict:
    """Return how far points are from others, in their invariant features."""
    mine, other = described(points), described(against)
    gaps = [wasserstein_1d(a, b) for a, b in zip(mine.T, other.T, strict=True)]
    energies = jax.lax.map(fitted.energy, points, batch_size=256)
    numbers = {
        "energy_distance_of_features": energy_distance(mine, other),
        "w1_of_a_feature": np.mean(np.array(gaps)),
        "median_model_energy": jnp.median(energies),
    }
    return {name: np.array([float(value)]) for name, value in numbers.items()}
