"""The images of the experiment `images`: to learn, to test, and of another kind."""

import dataclasses
import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, Real

from equistein.data import cached_array, DataError, labeled_images, LabeledImages
from equistein.diffusion import ReverseDiffusion
from equistein.energies import JointEnergy
from equistein.groups import ImageRotations, Trivial
from equistein.models import ContrastiveSettings, ImageSettings
from equistein.networks import SteerableCNN
from equistein.training import adam, Clamp, CrossEntropy, fit, Fitted, InMemory
from experiments._engine import AbstractConfig
from experiments._types import Key, Particles, Point

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
        download: Whether files that are not available may be fetched.
        num_outliers: The number of outliers of each kind.

    Raises:
        DataError: If the images are not available.
    """
    train = labeled_images(dataset, "train", download=download)
    test = labeled_images(dataset, "test", download=download)
    if train is None or test is None:
        raise DataError(
            f"The images of {dataset} are not available: put the publisher's four "
            "files into the folder fashion_mnist of $EQUISTEIN_DATA, allow the "
            "download with --download, or take --dataset digits."
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


_NUM_COMPLETED = 8
_NUM_WAYS = 4  # to complete an image


def long_chains(
    key: Key,
    fitted: Fitted,
    lengths: Sequence[float],
    num: int,
    quality: Callable[[Key, Particles], dict[str, Any]],
) -> dict[str, Real[np.ndarray, " length"]]:
    """Return the Fréchet distance of samples of shorter and longer chains."""
    generator, distances, steps = fitted.generator, [], []
    assert isinstance(generator, ReverseDiffusion)
    for length in lengths:
        steps.append(max(1, round(length * generator.steps.num_steps)))
        other = eqx.tree_at(
            lambda generator: generator.steps.num_steps, generator, steps[-1]
        )
        samples = other.sample(key, fitted.energy, num)  # type: ignore
        distances.append(float(quality(key, samples)["frechet_distance"]))
    return {"chain_steps": np.array(steps), "chain_distances": np.array(distances)}


def completed(
    key: Key, fitted: Fitted, sets: ImageSets
) -> Float[np.ndarray, "image way *shape"]:
    """Return test images, and what may go with the upper half of each."""
    side = sets.upright.shape[1]
    upper = np.arange(side) < side // 2
    rows = []
    for image in sets.upright[:_NUM_COMPLETED]:
        ways = fitted.sample(key, _NUM_WAYS, clamp=Clamp(image, upper))
        rows.append(np.concatenate([image[None], ways]))
    return np.stack(rows)


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
    """Return an ordinary CNN that has learned turned images with a fixed seed.

    Its weights are kept in the cache.

    Args:
        dataset: The data set.
        download: Whether files that are not available may be fetched.
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


_FEWEST = 1_000  # there are as many training images at least
POOL_AFTER = {"digits": (4,), "fashion-mnist": (1, 2)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Trained:
    """A model of the experiment.

    Attributes:
        label: What figures call it.
        note: What its numbers need to be said of it.
        kernel: The kernel of its negatives.
        few_labels: Whether it knows the classes of a few images only.
        contrastive: Whether it is a density, or a classifier alone.
        steerable: Whether its network knows quarter turns.
        aside: Whether it has one seed only, beside those that are compared.
        density: Whether it is the energy made for densities, on a U-shaped network and
            trained by denoising, not the paper's.
        turned: Whether it is trained on images that are turned at random.
        mirrored: Whether its symmetry has reflections too: D4.
        usual: Whether it is trained by default.
    """

    label: str
    note: str
    kernel: Literal["equivariant", "plain", "none"] = "equivariant"
    few_labels: bool = False
    contrastive: bool = True
    steerable: bool = True
    aside: bool = False
    density: bool = False
    turned: bool = False
    mirrored: bool = False
    usual: bool = True


MODELS = {
    "density": Trained(
        label="equivariant energy, denoising",
        note="Normal densities of each class, moved by the group, corrected by a "
        "U-shaped C4-steerable network at each level of noise, trained by denoising "
        "with cross-entropy beside; samples come from noise by reverse diffusion. "
        "bits_per_dimension: of held-out images with the least noise.",
        density=True,
    ),
    "density-plain": Trained(
        label="plain energy, denoising",
        note="Its twin without symmetry, of as many parameters and trained for as much "
        "time.",
        density=True,
        steerable=False,
    ),
    "density-turned": Trained(
        label="plain energy, turned images",
        note="The twin without symmetry, trained on images turned at random.",
        density=True,
        steerable=False,
        turned=True,
        aside=True,
    ),
    "density-mirrored": Trained(
        label="D4 energy, denoising",
        note="The same as `density`, with reflections beside the quarter turns.",
        density=True,
        mirrored=True,
        aside=True,
        usual=False,
    ),
    "plain": Trained(
        label="plain JEM, SVGD",
        note="A CNN without symmetry, of as many parameters, trained on upright images "
        "as all the others.",
        kernel="plain",
        steerable=False,
    ),
    "equivariant-svgd": Trained(
        label="equivariant JEM, SVGD",
        note="The C4-steerable network; its particles interact upright only.",
        kernel="plain",
    ),
    "equivariant-langevin": Trained(
        label="equivariant JEM, SGLD",
        note="The same network; its particles are Langevin chains that do not feel one "
        "another at all.",
        kernel="none",
        aside=True,
    ),
    "equivariant": Trained(
        label="equivariant JEM, E-SVGD",
        note="The same network; particles interact across orbits. The ratio is "
        "that of its iterations over those of equivariant-svgd, both read off once an "
        "epoch, from the running mean of the weights.",
    ),
    "discriminative": Trained(
        label="equivariant classifier",
        note="The same network trained as a classifier alone; its samples come from "
        "the same starts and steps, and show what these do without a density.",
        contrastive=False,
    ),
    "semi-supervised": Trained(
        label="JEM, few labels",
        note="The joint energy with a few labels of each class; all other images have "
        "none. Both models of few labels learn at half the rate.",
        few_labels=True,
        aside=True,
    ),
    "semi-discriminative": Trained(
        label="classifier, few labels",
        note="The classifier with the same labels, and nothing else; the typicality of "
        "both rests on these labels alone.",
        few_labels=True,
        contrastive=False,
        aside=True,
    ),
}
"""The models by name: the energy made for densities and its twins, three of the paper,
and what a joint energy is compared with."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImagesConfig(AbstractConfig):
    """Settings of `images`.

    Attributes:
        dataset: `digits` (8 x 8 pixels, with scikit-learn), or `fashion-mnist`.
        download: Whether images that are not available may be fetched (33 MB).
        models: Those to train, of density, density-plain, density-turned,
            density-mirrored (left out by default), plain, equivariant-svgd,
            equivariant-langevin, equivariant, discriminative, semi-supervised and
            semi-discriminative; some have the first seed alone.
        fields: The fields of each steerable layer, of four channels each; the plain
            twin has as many parameters.
        epochs_digits: Epochs of `fit.epoch_batches` batches, for the digits.
        epochs_fashion_mnist: The same for FashionMNIST.
        contrastive: The weight of contrastive divergence beside the cross-entropy.
        labels_a_class: The labels of each class in the semi-supervised models.
        labeled_fraction: The fraction of a batch that has labels there, on average.
        mark: The rotated accuracy whose first iteration is measured.
        num_monitored: Test images whose accuracy is followed in training.
        num_samples: Images drawn from each model.
        num_of_class: Images drawn of each class.
        num_outliers: Images of each other kind, and as many test images.
        num_annealed: Steps that anneal from the normal distributions to an energy made
            for densities, and back, for its log Z.
        num_long: Images of the chains of several lengths.
        chain_lengths: These lengths, in those of the samples.
        classifier_batches: The batches that the classifier has learned from in whose
            features samples are judged.
        num_attacked: Test images that are changed to mislead the model.
        radii: The largest change of a pixel in these attacks.
        density: How the energies made for densities are trained.
        twin_epochs: Epochs of their twins without symmetry, for as much time; None is
            as many.
        fit: How the others are trained; the model sets kernel, weights and epochs.
    """

    num_seeds: int = 3
    dataset: Dataset = "digits"
    download: bool = True
    models: tuple[str, ...] = tuple(name for name in MODELS if MODELS[name].usual)
    fields: tuple[int, ...] = (4, 8, 8, 8, 8, 8, 16, 16)
    epochs_digits: int = 8
    epochs_fashion_mnist: int = 15
    contrastive: float = 1e-6
    labels_a_class: int = 10
    labeled_fraction: float = 0.25
    mark: float = 0.8
    num_monitored: int = 1_000
    num_samples: int = 256
    num_of_class: int = 8
    num_outliers: int = 1_000
    num_annealed: int = 100
    num_long: int = 64
    chain_lengths: tuple[float, ...] = (0.3, 1.0, 3.0, 10.0)
    classifier_batches: int = 2_000
    num_attacked: int = 300
    radii: tuple[float, ...] = (0.01, 0.02, 0.04, 0.08)
    density: ImageSettings = ImageSettings()
    twin_epochs: int | None = None
    fit: ContrastiveSettings

    below_one: ClassVar[Sequence[str]] = ("labeled_fraction",)

    def __post_init__(self):
        """Raise `ValueError` for settings that do not go together."""
        super().__post_init__()
        if not self.models or not set(self.models) <= set(MODELS):
            raise ValueError(
                f"`models` must be of {', '.join(MODELS)}, but got {self.models!r}."
            )
        fewest = max(POOL_AFTER[self.dataset])
        if len(self.fields) < fewest:
            raise ValueError(
                f"`images` needs `fields` of at least {fewest} layers, but got "
                f"{self.fields!r}."
            )
        if self.fit.batch_size > _FEWEST:
            raise ValueError(
                f"`fit.batch_size` must be at most {_FEWEST}, but got "
                f"{self.fit.batch_size!r}."
            )

    @property
    def sets(self) -> ImageSets:
        """The images; `DataError` where they are not available."""
        return image_sets(self.dataset, self.download, self.num_outliers)
