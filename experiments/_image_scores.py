"""The images of the experiment `images`, and how models of them are judged."""

import dataclasses
import functools
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int
from scipy.spatial.distance import cdist
from scipy.stats import mannwhitneyu

from equistein.data import cached_array, DataError
from equistein.diffusion import MixtureNoiseEnergy
from equistein.energies import AbstractEnergy, JointEnergy
from equistein.groups import ImageRotations, Trivial
from equistein.metrics import (
    accuracy,
    expected_calibration_error,
    frechet_distance,
    outlier_scores,
    precision_and_recall,
    typicality,
)
from equistein.networks import SteerableCNN
from equistein.training import adam, CrossEntropy, fit, InMemory
from experiments._engine import Key, Particles, Point, Scalar
from experiments._labeled_images import labeled_images

Dataset = Literal["digits", "fashion-mnist"]
LabeledPoints = tuple[Particles, Int[Array, " particle"]]

_KEY = 1_234  # of the turns, the noise and the shuffles: the same for all models
_AT_ONCE = 200
_NUM_BINS = 15
_NUM_TYPICAL = 4_000  # training images that set what is typical
_NUM_NEIGHBORS = 1_000  # images that precision and recall are of
_NUM_NEAREST = 128  # images whose nearest training image is looked for
_NUM_REPEATS = 20  # draws of labels for the floor of the calibration error


@dataclasses.dataclass(frozen=True)
class ImageSets:
    """What models learn from and are judged on.

    Attributes:
        train: Upright images.
        labels: Their classes.
        upright: Held-out images, upright.
        rotated: The same, each turned by a random quarter.
        test_labels: Their classes.
        outliers: Images of other kinds, by name.
        names: What the classes are called.
    """

    train: Float[Array, "n side side channel"]
    labels: Int[Array, " n"]
    upright: Float[Array, "m side side channel"]
    rotated: Float[Array, "m side side channel"]
    test_labels: Int[Array, " m"]
    outliers: dict[str, Float[Array, "..."]]
    names: tuple[str, ...]

    @property
    def halves(
        self,
    ) -> tuple[Float[Array, "first *shape"], Float[Array, "second *shape"]]:
        """The test images in two parts: one stands in for samples of a model."""
        middle = len(self.upright) // 2
        return self.upright[:middle], self.upright[middle:]


@functools.cache
def image_sets(dataset: Dataset, download: bool, num_outliers: int) -> ImageSets:
    """Return the images of a data set, of FashionMNIST with MNIST as outliers.

    Raises:
        DataError: If the images are not available.
    """
    train = labeled_images(dataset, "train", download=download)
    test = labeled_images(dataset, "test", download=download)
    needs_mnist = dataset == "fashion-mnist"
    mnist = labeled_images("mnist", "test", download=download) if needs_mnist else None
    if train is None or test is None or (needs_mnist and mnist is None):
        raise DataError(
            f"The images of {dataset} are not available: put the publishers' files "
            "into the folders fashion_mnist and mnist_test of $EQUISTEIN_DATA, allow "
            "the download with --download, or take --dataset digits."
        )
    keys, upright = jr.split(jr.key(_KEY), 3), jnp.asarray(test.pixels)
    outliers = {}
    if mnist is not None:
        outliers["mnist"] = jnp.asarray(mnist.pixels[:num_outliers])
    some = test.pixels[:num_outliers]
    order = jr.permutation(keys[1], some[0].size)
    shuffled = some.reshape(len(some), -1)[:, np.asarray(order)]
    outliers["shuffled"] = jnp.asarray(shuffled.reshape(some.shape))
    outliers["noise"] = jr.uniform(keys[2], some.shape, some.dtype)
    return ImageSets(
        jnp.asarray(train.pixels), jnp.asarray(train.labels), upright,
        turned(keys[0], upright), jnp.asarray(test.labels), outliers, test.names,
    )  # fmt: skip


def turned(key: Key, images: Particles) -> Particles:
    """Return images, each turned by a random quarter."""
    group = ImageRotations()
    return jax.vmap(group.act)(group.sample(key, len(images)), images)


_SEED = 4_321
_BATCH = 128
_RATE = 5e-3


@functools.cache
def classifier(dataset: Dataset, download: bool, num_batches: int) -> SteerableCNN:
    """Return an ordinary CNN that has learned turned images with a fixed seed.

    Its weights are kept in the cache.
    """
    sets = image_sets(dataset, download, 1)
    network_key, turn_key, fit_key = jr.split(jr.key(_SEED), 3)
    network = SteerableCNN(
        sets.train.shape[1:], (16, 32, 64), sizes=(4, 4, 3), strides=(2, 2, 1),
        symmetry=Trivial(), out_size=len(sets.names), key=network_key,
    )  # fmt: skip
    weights, rebuilt = ravel_pytree(eqx.filter(network, eqx.is_inexact_array))

    def learned() -> np.ndarray:
        fitted = fit(
            fit_key, JointEnergy(network),
            InMemory(turned(turn_key, sets.train), sets.labels, num_batches),
            CrossEntropy(), num_epochs=1, batch_size=_BATCH,
            optimizer=adam(_RATE, num_batches),
        )  # fmt: skip
        trained = eqx.filter(fitted.energy.network, eqx.is_inexact_array)  # type: ignore
        return np.asarray(ravel_pytree(trained)[0])

    settings = {"dataset": dataset, "seed": _SEED, "batches": num_batches}
    found = cached_array("image-classifier", settings, weights.shape, learned)
    return eqx.combine(rebuilt(jnp.asarray(found, weights.dtype)), network)


@eqx.filter_jit
def seen(
    network: SteerableCNN, images: Particles
) -> tuple[Float[Array, "n feature"], Int[Array, " n"]]:
    """Return the features of images in the classifier, and their likeliest classes.

    Pixels are cut off at 0 and 1, as a picture shows them: the features of others,
    which the classifier has never seen, are so far out that they would decide every
    distance.
    """

    def of_one(image: Point):
        features = network.invariants(jnp.clip(image, 0, 1))
        return features, jnp.argmax(network.head(features))

    return jax.lax.map(of_one, images, batch_size=200)


@eqx.filter_jit
def _logits_of(energy: AbstractEnergy, points: Particles) -> Float[Array, "n class"]:
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
    return {"rotated_accuracy": accuracy(_logits_of(energy, points), labels)}


def classification(energy: AbstractEnergy, sets: ImageSets) -> dict[str, Any]:
    """Return accuracy and calibration."""
    labels = sets.test_labels
    upright, rotated = (_logits_of(energy, x) for x in (sets.upright, sets.rotated))
    return {
        "rotated_accuracy": accuracy(rotated, labels),
        "upright_accuracy": accuracy(upright, labels),
        "calibration_error": expected_calibration_error(rotated, labels, _NUM_BINS),
        "calibration_error_floor": _calibration_floor(rotated),
    }


def _calibration_floor(logits: Float[Array, "n class"]) -> Scalar:
    """Return the error that labels drawn from the model itself would have."""

    def once(key):
        labels = jr.categorical(key, logits)
        return expected_calibration_error(logits, labels, _NUM_BINS)

    return jnp.mean(jax.lax.map(once, jr.split(jr.key(0), _NUM_REPEATS)))


def detection(
    energy: AbstractEnergy, sets: ImageSets, num: int, known: LabeledPoints
) -> dict[str, Any]:
    """Return how well each score tells test images from others."""
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
    for i, name in enumerate(sets.outliers, start=1):
        num = len(sets_of["test"]) * len(sets_of[name])  # pairs
        areas = {k: mannwhitneyu(v[0], v[i]).statistic / num for k, v in parts.items()}
        numbers |= {f"auroc_{name}_{score}": area for score, area in areas.items()}
        numbers[f"auroc_{name}_best"] = max(map(float, areas.values()))
    return numbers


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


def sample_scores(
    key: Key, samples: Particles, sets: ImageSets, network: SteerableCNN
) -> dict[str, Any]:
    """Return how like real images samples are, as a fixed classifier sees them.

    The Fréchet distance to the second half of the test images, all turned; precision
    and recall, of as many of both; the proportions of the rarest and the most frequent
    class; and the median distance to the nearest training image, in any orientation.
    """
    keys = jr.split(key, 3)
    real, _ = seen(network, turned(keys[0], sets.halves[1]))
    judged, found = seen(network, turned(keys[1], samples))
    num = min(len(samples), len(real), _NUM_NEIGHBORS)
    near = precision_and_recall(judged[:num], real[:num])
    counts = jnp.bincount(found, length=len(sets.names)) / len(samples)
    copies = jax.vmap(ImageRotations().orbit)(samples[:_NUM_NEAREST])
    train = np.asarray(sets.train).reshape(len(sets.train), -1)
    apart = [cdist(each.reshape(len(each), -1), train).min() for each in copies]
    return {
        "frechet_distance": frechet_distance(judged, real),
        "precision": near.precision,
        "recall": near.recall,
        "rarest_class": jnp.min(counts),
        "most_frequent_class": jnp.max(counts),
        "nearest_training_image": np.median(apart),
    }
