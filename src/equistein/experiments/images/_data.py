"""The images of the experiment `images`: to learn, to test, and of another kind."""

import dataclasses
import functools
import warnings
from typing import Literal

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int

from equistein._types import Key, Particles
from equistein.data import DataError, labeled_images, LabeledImages
from equistein.groups import ImageRotations

Dataset = Literal["digits", "fashion-mnist"]
LabeledPoints = tuple[Particles, Int[Array, " particle"]]
"""Images with their classes, or -1 where they are unknown."""

_KEY = 1_234  # of the turns, the noise and the shuffles: the same for all models


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


@functools.cache
def image_sets(dataset: Dataset, download: bool, num_outliers: int) -> ImageSets:
    """Return the images of a data set.

    Args:
        dataset: `digits`, or `fashion-mnist` with MNIST as outliers.
        download: Whether files that are not at hand may be fetched.
        num_outliers: The number of outliers of each kind.

    Raises:
        DataError: If the images are not at hand.
    """
    train = labeled_images(dataset, "train", download=download)
    test = labeled_images(dataset, "test", download=download)
    if train is None or test is None:
        raise DataError(
            f"The images of {dataset} are not at hand: put the publisher's four files "
            "into the folder fashion_mnist of $EQUISTEIN_DATA, allow the download with "
            "--download, or take --dataset digits."
        )
    keys = jr.split(jr.key(_KEY), 3)
    group, upright = ImageRotations(), jnp.asarray(test.pixels)
    elements = group.sample(keys[0], len(upright))
    outliers = {}
    if dataset == "fashion-mnist":
        mnist = _mnist(download)
        if mnist is not None:
            outliers["mnist"] = jnp.asarray(mnist.pixels[:num_outliers])
    some = test.pixels[:num_outliers]
    order = jr.permutation(keys[1], some[0].size)
    shuffled = some.reshape(len(some), -1)[:, np.asarray(order)]
    outliers["shuffled"] = jnp.asarray(shuffled.reshape(some.shape))
    outliers["noise"] = jr.uniform(keys[2], some.shape, some.dtype)
    return ImageSets(
        jnp.asarray(train.pixels),
        jnp.asarray(train.labels),
        upright,
        jax.vmap(group.act)(elements, upright),
        jnp.asarray(test.labels),
        outliers,
        test.names,
    )


def _mnist(download: bool) -> LabeledImages | None:
    """Return MNIST's test images, or tell that they are left out."""
    why = "it is not in the folder mnist_test of $EQUISTEIN_DATA"
    try:
        found = labeled_images("mnist", "test", download=download)
    except DataError as error:
        found, why = None, str(error)
    if found is None:
        warnings.warn(f"MNIST is left out: {why}", RuntimeWarning, stacklevel=2)
    return found


def turned(key: Key, images: Particles) -> Particles:
    """Return images, each turned by a random quarter."""
    group = ImageRotations()
    return jax.vmap(group.act)(group.sample(key, len(images)), images)


def few_labels(sets: ImageSets, num: int, fraction: float, seed: int) -> LabeledPoints:
    """Return training images of which a few of each class have a label.

    These are repeated until they make the given fraction, or no batch would hold one.

    Args:
        sets: The images.
        num: The number of labels of each class.
        fraction: The fraction of images with a label.
        seed: The seed of the choice.
    """
    generator = np.random.default_rng(seed)
    labels = np.asarray(sets.labels)
    of_class = [np.flatnonzero(labels == label) for label in range(len(sets.names))]
    chosen = np.concatenate([generator.permutation(rows)[:num] for rows in of_class])
    chosen = generator.permutation(chosen)  # so that the first rows have all classes
    others = np.setdiff1d(np.arange(len(labels)), chosen)
    copies = max(1, round(fraction / (1 - fraction) * len(others) / len(chosen)))
    rows = np.concatenate([np.tile(chosen, copies), others])
    known = np.where(np.isin(rows, chosen), labels[rows], -1)
    return sets.train[rows], jnp.asarray(known)
