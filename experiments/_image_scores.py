"""How well a joint energy of images classifies, detects outliers and draws."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int

from equistein.diffusion import MixtureNoiseEnergy
from equistein.energies import AbstractEnergy, JointEnergy
from equistein.groups import ImageRotations
from equistein.metrics import (
    accuracy,
    auroc,
    energy_distance,
    expected_calibration_error,
    frechet_distance,
    nearest_distances,
    outlier_scores,
    precision_and_recall,
    projected_gradient_attack,
    reliability,
    typicality,
)
from equistein.networks import SteerableCNN
from experiments._image_models import ImageSets, LabeledPoints, seen, turned
from experiments._types import Key, Particles, Point, Scalar

_AT_ONCE = 200
_NUM_BINS = 15
_NUM_TYPICAL = 4_000  # training images that set what is typical
_NUM_NEIGHBORS = 1_000  # images that precision and recall are of
_NUM_NEAREST = 128  # images whose nearest training image is looked for
_NUM_REPEATS = 20  # draws of labels for the floor of the calibration error


@eqx.filter_jit
def logits_of(energy: AbstractEnergy, points: Particles) -> Float[Array, "n class"]:
    """Return the logits of many images, some at once to save memory."""
    return jax.lax.map(eqx.Partial(_logits, energy), points, batch_size=_AT_ONCE)


def _logits(energy: AbstractEnergy, image: Point) -> Float[Array, " class"]:
    logits = energy.evaluate(image).logits
    assert logits is not None
    return logits


def rotated_accuracy(
    points: Particles, labels: Int[Array, " n"], energy: AbstractEnergy
) -> dict[str, Scalar]:
    """Return the accuracy on turned images, which is followed in training."""
    return {"rotated_accuracy": accuracy(logits_of(energy, points), labels)}


def classification(
    energy: AbstractEnergy, sets: ImageSets
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return accuracy and calibration, and what the reliability diagram needs."""
    labels = sets.test_labels
    upright, rotated = (logits_of(energy, x) for x in (sets.upright, sets.rotated))
    numbers = {
        "rotated_accuracy": accuracy(rotated, labels),
        "upright_accuracy": accuracy(upright, labels),
        "calibration_error": expected_calibration_error(rotated, labels, _NUM_BINS),
        "calibration_error_floor": _calibration_floor(rotated),
    }
    return numbers, {
        "reliability": np.stack(reliability(rotated, labels, _NUM_BINS)),
        "num_judged": np.array(len(labels)),
    }


def _calibration_floor(logits: Float[Array, "n class"]) -> Scalar:
    """Return the error that labels drawn from the model itself would have."""

    def once(key):
        labels = jr.categorical(key, logits)
        return expected_calibration_error(logits, labels, _NUM_BINS)

    return jnp.mean(jax.lax.map(once, jr.split(jr.key(0), _NUM_REPEATS)))


def robustness(
    energy: AbstractEnergy, sets: ImageSets, radii: Sequence[float], num: int
) -> Float[np.ndarray, " radius"]:
    """Return the accuracy on turned images changed to mislead, by 0 and each radius."""
    points, labels = sets.rotated[:num], sets.test_labels[:num]
    found = [float(accuracy(logits_of(energy, points), labels))]
    for radius in radii:
        size = jnp.asarray(radius, points.dtype)
        moved = projected_gradient_attack(
            eqx.Partial(_logits, energy), points, labels, size
        )
        found.append(float(accuracy(logits_of(energy, moved), labels)))
    return np.array(found)


def detection(
    energy: AbstractEnergy, sets: ImageSets, num: int, known: LabeledPoints
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return how well each score tells test images from others, and $-E(x)$ of each."""
    images, labels = (values[:_NUM_TYPICAL] for values in known)
    sets_of = {"test": sets.upright[:num]} | sets.outliers
    points = jnp.concatenate(list(sets_of.values()))
    typical = typicality(
        eqx.Partial(_statistics, energy), points, images, labels, len(sets.names)
    )
    scores = outlier_scores(energy, points) | {"typicality": typical}
    ends = np.cumsum([len(part) for part in sets_of.values()])[:-1]
    parts = {score: jnp.split(values, ends) for score, values in scores.items()}
    numbers = {}
    for index, name in enumerate(sets.outliers, start=1):
        areas = {score: auroc(part[0], part[index]) for score, part in parts.items()}
        numbers |= {f"auroc_{name}_{score}": area for score, area in areas.items()}
        numbers[f"auroc_{name}_best"] = max(map(float, areas.values()))
    densities = {
        f"density_{name}": np.asarray(part)
        for name, part in zip(sets_of, parts["log_density"], strict=True)
    }
    return numbers, densities


def _statistics(energy: AbstractEnergy, image: Point) -> Float[Array, " statistic"]:
    """Return the invariant features of all layers, and how steep the density is."""
    steepness = 0.5 * jnp.log(jnp.sum(jax.grad(energy)(image) ** 2) + 1e-20)
    return jnp.append(_invariants(energy, image), steepness)


def _invariants(energy: AbstractEnergy, image: Point) -> Float[Array, " field"]:
    """Return invariant features of an image, by the network of an energy of images."""
    if isinstance(energy, MixtureNoiseEnergy):
        return energy.network.features(image, energy.sigma_min / energy.scale)
    assert isinstance(energy, JointEnergy)
    assert isinstance(energy.network, SteerableCNN)
    return energy.network.all_invariants(image)


def halves(
    sets: ImageSets,
) -> tuple[Float[Array, "first *shape"], Float[Array, "second *shape"]]:
    """Return the test images in two parts: one stands in for samples of a model."""
    middle = len(sets.upright) // 2
    return sets.upright[:middle], sets.upright[middle:]


def sample_distance(key: Key, samples: Particles, sets: ImageSets) -> Scalar:
    """Return the energy distance to the second half of the test images, all turned.

    No more samples are compared than one half has, for a floor of as many.
    """
    first, second = halves(sets)
    samples = samples[: len(first)]
    keys = jr.split(key, 2)
    others = turned(keys[1], second[-2 * len(samples) :])
    return energy_distance(turned(keys[0], samples), others)


def sample_scores(
    key: Key, samples: Particles, sets: ImageSets, network: SteerableCNN
) -> dict[str, Any]:
    """Return how like real images samples are, as a fixed classifier sees them.

    The Fréchet distance to the second half of the test images, all turned; precision
    and recall, of as many of both; the proportions of the rarest and the most frequent
    class; and the median distance to the nearest training image, in any orientation.

    Args:
        key: The source of the turns.
        samples: The samples.
        sets: The images.
        network: The classifier.
    """
    keys = jr.split(key, 3)
    real = seen(network, turned(keys[0], halves(sets)[1]))
    judged = seen(network, turned(keys[1], samples))
    num = min(len(samples), len(real.features), _NUM_NEIGHBORS)
    near = precision_and_recall(judged.features[:num], real.features[:num])
    counts = jnp.bincount(judged.classes, length=len(sets.names)) / len(samples)
    few = samples[:_NUM_NEAREST]
    copies = jax.vmap(ImageRotations().orbit)(few)
    apart = nearest_distances(copies.reshape(-1, *few.shape[1:]), sets.train)
    return {
        "energy_distance": sample_distance(keys[2], samples, sets),
        "frechet_distance": frechet_distance(judged.features, real.features),
        "precision": near.precision,
        "recall": near.recall,
        "rarest_class": jnp.min(counts),
        "most_frequent_class": jnp.max(counts),
        "nearest_training_image": jnp.median(apart.reshape(len(few), -1).min(axis=1)),
    }
