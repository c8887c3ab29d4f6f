"""How good an energy is on data that it has not seen."""

from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from equistein._gate import gate
from equistein._types import Key, Particles
from equistein.diffusion import (
    AbstractNoiseEnergy,
    denoising_loss,
    MixtureNoiseEnergy,
)
from equistein.energies import AbstractEnergy
from equistein.metrics import (
    accuracy,
    auroc,
    expected_calibration_error,
    outlier_scores,
)
from equistein.models._dataset import Dataset
from equistein.models._image_bits import image_bits
from equistein.models._values import values_at
from equistein.training import Box, Fitted

_DENOISED = 512  # points to judge denoising by
_STEPS_OF_IMAGES = 100  # temperatures, at most


@gate
def scores(
    key: Key, fitted: Fitted, dataset: Dataset, num_steps: int
) -> dict[str, float]:
    """Return how good a learned density is on data that was held out.

    The log-likelihood, with an error of two standard errors over the points and the
    bound of that of log Z, found by annealing both ways; AUROC, accuracy and
    calibration. An energy of all noise levels is judged by the loss that it was
    trained with, and one of images with pixels from 0 to 1 by their bits too.

    Args:
        key: The source of randomness.
        fitted: The learned density.
        dataset: What it was fitted to.
        num_steps: The temperatures of the annealed importance sampling of log Z.
    """
    energy = fitted.energy
    if isinstance(energy, AbstractNoiseEnergy):
        numbers = _denoising(key, fitted, dataset)
        numbers |= _bits(jr.fold_in(key, 1), energy, dataset.held_out(), num_steps)
        return numbers | _classification(fitted, dataset.held_out())
    assert isinstance(energy, AbstractEnergy)
    normalizer_key, box_key = jr.split(key)
    train, held_out = dataset.train(), dataset.held_out()
    project = jax.vmap(fitted.group.project)
    # Chains that go back from the data bound log Z from above.
    normalizer = fitted.log_normalizer(
        normalizer_key, num_particles=256, num_steps=num_steps, samples=train.points
    )
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
        points = project(held_out.points)
        values = fitted.log_likelihood(points, normalizer)
        numbers["held_out_log_likelihood"] = jnp.mean(values)
        spread = 2 * jnp.std(values) / len(values) ** 0.5
        numbers["held_out_log_likelihood_error"] = normalizer.error + spread
        box = Box(train.points, fitted.group).sample(box_key, 1_000)
        inside = outlier_scores(energy, points)
        outside = outlier_scores(energy, box)
        for name, values in inside.items():
            numbers[f"auroc_by_{name}"] = auroc(values, outside[name])
    numbers |= _classification(fitted, held_out)
    return {name: float(value) for name, value in numbers.items()}


def _bits(
    key: Key, energy: AbstractNoiseEnergy, held_out: Dataset, num_steps: int
) -> dict[str, float]:
    """Return the bits of held-out images, where pixels are from 0 to 1."""
    images = held_out.points
    if not isinstance(energy, MixtureNoiseEnergy) or len(images) < 2:
        return {}
    if float(jnp.min(images)) < 0 or float(jnp.max(images)) > 1:
        return {}
    num_steps = min(num_steps, _STEPS_OF_IMAGES)
    found = image_bits(key, energy, images, num_steps=num_steps)
    return {name: float(value) for name, value in found.items()}


def _classification(fitted: Fitted, held_out: Dataset) -> dict[str, Any]:
    """Return accuracy and calibration on held-out points whose class is known."""
    energy, labels = fitted.energy, held_out.labels
    assert isinstance(energy, AbstractEnergy)
    classes = energy.num_classes(held_out.points.shape[1:])
    if classes is None or labels is None or not (labels >= 0).any():
        return {}
    known = labels >= 0
    points: Particles = held_out.points[known]
    logits = values_at(energy.evaluate, points).logits
    right = jnp.asarray(labels[known])
    return {
        "held_out_accuracy": accuracy(logits, right),
        "calibration_error": expected_calibration_error(logits, right),
        "num_held_out_labels": known.sum(),
    }


def _denoising(key: Key, fitted: Fitted, dataset: Dataset) -> dict[str, float]:
    """Return the loss of denoising, on the training data and on those held out."""
    energy = fitted.energy
    assert isinstance(energy, AbstractNoiseEnergy)
    numbers = {"rollbacks": float(len(fitted.events))}
    parts = {"train": dataset.train().points, "held_out": dataset.held_out().points}
    for name, points in parts.items():
        if len(points):
            repeats = -(-_DENOISED // len(points))
            some = jnp.concatenate([jax.vmap(energy.project)(points)] * repeats)
            order_key, level_key, noise_key = jr.split(key, 3)
            some = jr.permutation(order_key, some)[:_DENOISED]
            noise = energy.random_levels(level_key, len(some))
            loss = denoising_loss(noise_key, energy, some, noise)
            numbers[f"{name}_denoising_loss"] = float(np.asarray(loss))
    return numbers
