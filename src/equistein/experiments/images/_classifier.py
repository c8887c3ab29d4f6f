"""A fixed classifier, in whose features samples are judged."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int

from equistein._types import Particles, Point
from equistein.data import cached_array
from equistein.energies import JointEnergy
from equistein.experiments.images._data import Dataset, image_sets, turned
from equistein.groups import Trivial
from equistein.networks import SteerableCNN
from equistein.training import adam, CrossEntropy, fit

_SEED = 4_321
_BATCH = 128
_RATE = 5e-3


class Judged(eqx.Module):
    """What the classifier sees in images.

    Attributes:
        features: The features that its classes come from.
        classes: The likeliest class of each image.
    """

    features: Float[Array, "n feature"]
    classes: Int[Array, " n"]


@functools.cache
def classifier(dataset: Dataset, download: bool, num_batches: int) -> SteerableCNN:
    """Return an ordinary CNN that has learned turned images once, with a fixed seed.

    Its weights are kept in the cache.

    Args:
        dataset: The data set.
        download: Whether files that are not at hand may be fetched.
        num_batches: The batches of 128 images that it learns from.
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
            fit_key, JointEnergy(network), turned(turn_key, sets.train), CrossEntropy(),
            labels=sets.labels, num_epochs=1, epoch_batches=num_batches,
            batch_size=_BATCH, optimizer=adam(_RATE, num_batches),
        )  # fmt: skip
        trained = eqx.filter(fitted.energy.network, eqx.is_inexact_array)  # type: ignore
        return np.asarray(ravel_pytree(trained)[0])

    settings = {"dataset": dataset, "seed": _SEED, "batches": num_batches}
    found = cached_array("image-classifier", settings, weights.shape, learned)
    return eqx.combine(rebuilt(jnp.asarray(found, weights.dtype)), network)


@eqx.filter_jit
def seen(network: SteerableCNN, images: Particles) -> Judged:
    """Return the features of images and their likeliest classes.

    Pixels are cut off at 0 and 1, as a picture shows them: the features of others,
    which the classifier has never seen, are so far out that they would decide every
    distance.
    """

    def of_one(image: Point):
        features = network.invariants(jnp.clip(image, 0, 1))
        return features, jnp.argmax(network.head(features))

    return Judged(*jax.lax.map(of_one, images, batch_size=200))
