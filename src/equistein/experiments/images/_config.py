"""The settings of `images`, and the models that it compares."""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar, Literal

from equistein.experiments.engine._checks import AbstractConfig
from equistein.experiments.images._data import Dataset, image_sets, ImageSets
from equistein.models import ContrastiveSettings, ImageSettings

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
        usual: Whether it is trained if nobody asks.
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
        note="The C4-steerable network; its particles feel one another upright only.",
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
        note="The same network; particles feel one another across orbits. The ratio is "
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
        download: Whether images that are not at hand may be fetched (33 MB).
        models: Those to train, of density, density-plain, density-turned,
            density-mirrored (left out if nobody asks), plain, equivariant-svgd,
            equivariant-langevin, equivariant, discriminative, semi-supervised and
            semi-discriminative; some have the first seed alone.
        fields: The fields of each steerable layer, of four channels each; the plain
            twin has as many parameters.
        epochs_digits: Epochs of `fit.epoch_batches` batches, for the digits.
        epochs_fashion_mnist: The same for FashionMNIST.
        contrastive: The weight of contrastive divergence beside the cross-entropy.
        labels_a_class: The labels of each class in the semi-supervised models.
        labeled_fraction: The fraction of a batch that has labels there, on average.
        mark: The rotated accuracy whose first iteration is told.
        num_monitored: Test images whose accuracy is followed in training.
        num_samples: Images drawn from each model.
        num_of_class: Images drawn of each class.
        num_outliers: Images of each other kind, and as many test images.
        num_annealed: Steps that anneal from the normal laws to an energy made for
            densities, and back, for its log Z.
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
        """The images; `DataError` where they are not at hand."""
        return image_sets(self.dataset, self.download, self.num_outliers)
