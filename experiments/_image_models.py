"""The models of images, and their settings."""

import dataclasses
from collections.abc import Collection, Mapping
from typing import ClassVar

import jax.numpy as jnp

import equistein as es
from experiments._engine import AbstractConfig, Key
from experiments._image_scores import Dataset, image_sets, ImageSets, LabeledPoints

_POOL_AFTER = {"digits": (4,), "fashion-mnist": (1, 2)}


_CONTRASTIVE = 1e-6  # the weight of contrastive divergence beside the cross-entropy
MODELS = {
    "density": (
        "equivariant energy, denoising",
        "Normal densities of each class, moved by the group, corrected by a U-shaped "
        "C4-steerable network at each level of noise, trained by denoising with "
        "cross-entropy beside; samples come from noise by reverse diffusion.",
    ),
    "density-plain": (
        "plain energy, denoising",
        "Its twin without symmetry, of as many parameters and trained for as much "
        "time.",
    ),
    "density-turned": (
        "plain energy, turned images",
        "The twin without symmetry, trained on images turned at random.",
    ),
    "density-mirrored": (
        "D4 energy, denoising",
        "The same as `density`, with reflections beside the quarter turns.",
    ),
    "plain": (
        "plain JEM, SVGD",
        "A CNN without symmetry, of as many parameters, trained on upright images as "
        "all the others.",
    ),
    "equivariant-svgd": (
        "equivariant JEM, SVGD",
        "The C4-steerable network; its particles interact upright only.",
    ),
    "equivariant": (
        "equivariant JEM, E-SVGD",
        "The same network; particles interact across orbits.",
    ),
    "discriminative": (
        "equivariant classifier",
        "The same network trained as a classifier alone; its samples come from the "
        "same starts and steps, and show what these do without a density.",
    ),
}
"""The label and a note of each model: the energy made for densities and its twins,
three of the paper, and a classifier."""


_PLAIN = ("density-plain", "density-turned", "plain")  # without symmetry


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImagesConfig(AbstractConfig):
    """Settings of `images`.

    Attributes:
        dataset: `digits` (8 x 8 pixels, with scikit-learn), or `fashion-mnist`.
        download: Whether images that are not available may be fetched (33 MB).
        models: Those to train, also density-mirrored; some have the first seed alone.
        fields: The fields of each steerable layer, of four channels each; the plain
            twin has as many parameters.
        epochs_digits: Epochs of `fit.epoch_batches` batches, for the digits.
        epochs_fashion_mnist: The same for FashionMNIST.
        num_monitored: Test images whose accuracy is followed in training.
        num_samples: Images drawn from each model.
        num_outliers: Images of each other kind, and as many test images.
        num_annealed: Steps that anneal from the normal distributions to an energy made
            for densities, and back, for its log Z.
        classifier_batches: The batches that the classifier has learned from in whose
            features samples are judged.
        density: How the energies made for densities are trained.
        twin_epochs: Epochs of their twins without symmetry, for as much time; None is
            as many.
        fit: How the others are trained; the model sets kernel, weights and epochs.
    """

    num_seeds: int = 3
    dataset: Dataset = "digits"
    download: bool = True
    models: tuple[str, ...] = tuple(
        name for name in MODELS if name != "density-mirrored"
    )
    fields: tuple[int, ...] = (4, 8, 8, 8, 8, 8, 16, 16)
    epochs_digits: int = 8
    epochs_fashion_mnist: int = 15
    num_monitored: int = 1_000
    num_samples: int = 256
    num_outliers: int = 1_000
    num_annealed: int = 100
    classifier_batches: int = 2_000
    density: es.models.ImageSettings = es.models.ImageSettings()
    twin_epochs: int | None = None
    fit: es.models.ContrastiveSettings

    words: ClassVar[Mapping[str, Collection[str]]] = {"models": MODELS}

    def __post_init__(self):
        """Raise `ValueError` for settings that do not go together."""
        super().__post_init__()
        fewest = max(_POOL_AFTER[self.dataset])
        if len(self.fields) < fewest:
            raise ValueError(
                f"`images` needs `fields` of at least {fewest} layers, but got "
                f"{self.fields!r}."
            )

    @property
    def sets(self) -> ImageSets:
        """The images; `DataError` where they are not available."""
        return image_sets(self.dataset, self.download, self.num_outliers)


def model_of(
    key: Key, config: ImagesConfig, name: str, known: LabeledPoints
) -> es.models.Model:
    """Return a model, untrained, with its training."""
    sets, settings = config.sets, config.fit
    if name.startswith("density"):
        return _density_model(key, config, name, known)
    network = es.networks.SteerableCNN(
        sets.train.shape[1:], config.fields, pool_after=_POOL_AFTER[config.dataset],
        out_size=len(sets.names), scale=float(jnp.sqrt(jnp.mean(sets.train**2))),
        key=key,
    )  # fmt: skip
    if name in _PLAIN:
        network = es.networks.plain_twin(network, key=key)
    digits = config.dataset == "digits"
    num_epochs = config.epochs_digits if digits else config.epochs_fashion_mnist
    upright = name in ("plain", "equivariant-svgd")
    bare = dataclasses.replace(
        settings, num_epochs=num_epochs, label_weight=0.0,
        kernel="plain" if upright else "equivariant",
        data_noise=0.0,
    )  # fmt: skip
    model = es.models.contrastive_model(
        es.energies.JointEnergy(network, settings.temperature), *known, bare
    )
    objective: es.training.AbstractObjective = es.training.CrossEntropy()
    if name != "discriminative":
        objective = _CONTRASTIVE * model.objective + objective
    if settings.data_noise:
        objective = es.training.Blurred(objective, settings.data_noise)
    return dataclasses.replace(model, objective=objective)


def _density_model(
    key: Key, config: ImagesConfig, name: str, known: LabeledPoints
) -> es.models.Model:
    """Return the energy made for densities, or its twin without symmetry."""
    settings, group = config.density, es.groups.ImageRotations()
    if name == "density-mirrored":
        group = es.groups.ImageRotations(reflections=True)
    if name in _PLAIN:  # of half the channels a layer, and as many parameters
        group = es.groups.Trivial()
        fields = tuple(2 * num for num in settings.fields)
        settings = dataclasses.replace(
            settings,
            fields=fields,
            num_epochs=config.twin_epochs or settings.num_epochs,
        )
    return es.models.image_model(key, group, *known, settings)
