"""How well a joint energy of images classifies, doubts, and draws."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int

from equistein._types import Key, Particles, Point, Scalar
from equistein.energies import AbstractEnergy, JointEnergy
from equistein.experiments.images._data import ImageSets, LabeledPoints
from equistein.groups import ImageRotations
from equistein.metrics import (
    accuracy,
    auroc,
    energy_distance,
    expected_calibration_error,
    outlier_scores,
    projected_gradient_attack,
    reliability,
    typicality,
)
from equistein.networks import SteerableCNN

_AT_ONCE = 200
_NUM_BINS = 15
_NUM_TYPICAL = 4_000  # training images that set what is typical
_NUM_REPEATS = 20  # draws of labels for the floor of the calibration error


@eqx.filter_jit
def logits_of(energy: JointEnergy, points: Particles) -> Float[Array, "n class"]:
    """Return the logits of many images, some at once to save memory."""
    return jax.lax.map(energy.logits, points, batch_size=_AT_ONCE)


def rotated_accuracy(
    points: Particles, labels: Int[Array, " n"], energy: AbstractEnergy
) -> dict[str, Scalar]:
    """Return the accuracy on turned images, which is followed in training."""
    assert isinstance(energy, JointEnergy)
    return {"rotated_accuracy": accuracy(logits_of(energy, points), labels)}


def classification(
    energy: JointEnergy, sets: ImageSets
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
    energy: JointEnergy, sets: ImageSets, radii: Sequence[float], num: int
) -> Float[np.ndarray, " radius"]:
    """Return the accuracy on turned images changed to mislead, by 0 and each radius."""
    points, labels = sets.rotated[:num], sets.test_labels[:num]
    found = [float(accuracy(logits_of(energy, points), labels))]
    for radius in radii:
        size = jnp.asarray(radius, points.dtype)
        moved = projected_gradient_attack(energy.logits, points, labels, size)
        found.append(float(accuracy(logits_of(energy, moved), labels)))
    return np.array(found)


def detection(
    energy: JointEnergy, sets: ImageSets, num: int, known: LabeledPoints
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


def _statistics(energy: JointEnergy, image: Point) -> Float[Array, " statistic"]:
    """Return the invariant features of all layers, and how steep the density is."""
    assert isinstance(energy.network, SteerableCNN)
    steepness = 0.5 * jnp.log(jnp.sum(jax.grad(energy)(image) ** 2) + 1e-20)
    return jnp.append(energy.network.all_invariants(image), steepness)


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
    group, keys = ImageRotations(), jr.split(key, 2)
    turned = [
        jax.vmap(group.act)(group.sample(key, len(x)), x)
        for key, x in zip(keys, (samples, second[-2 * len(samples) :]), strict=True)
    ]
    return energy_distance(*turned)
