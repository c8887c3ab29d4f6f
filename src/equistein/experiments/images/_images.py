"""A joint energy model of images that knows quarter turns (paper, section 5, E.3)."""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Literal

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Int

from equistein._types import Key, Particles
from equistein.energies import JointEnergy
from equistein.experiments._base import Experiment, Stage
from equistein.experiments.images._data import few_labels, image_sets, ImageSets
from equistein.experiments.images._figures import (
    ASIDE,
    CAPTIONS,
    draw,
    MODELS,
    NOTES,
    SHOWN,
)
from equistein.experiments.images._scores import (
    accuracy_monitor,
    classification,
    detection,
    halves,
    robustness,
    sample_distance,
)
from equistein.experiments.learned._planar import metrics_of, seeded
from equistein.networks import plain_twin, SteerableCNN
from equistein.runs import FLOOR, Outcome, SEED
from equistein.training import fit, FitConfig, Fitted

_FEWEST = 1_000  # there are as many training images at least
_POOL_AFTER = {"digits": (4,), "fashion-mnist": (1, 2)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImagesConfig:
    """Settings of `images`.

    Attributes:
        dataset: `digits` (8 x 8 pixels, with scikit-learn), or `fashion-mnist`.
        download: Whether images that are not at hand may be fetched (33 MB).
        models: Those to train, of plain, equivariant-svgd, equivariant-langevin,
            equivariant, discriminative, semi-supervised and semi-discriminative.
        num_seeds: The number of seeds, counted up from the run's seed;
            equivariant-langevin and the semi-supervised models have the first alone.
        fields: The fields of each steerable layer, of four channels each; the plain
            twin has as many parameters.
        epochs_digits: Epochs of `fit.epoch_batches` batches, for the digits.
        epochs_fashion_mnist: The same for FashionMNIST.
        labels_a_class: The labels of each class in the semi-supervised models.
        labelled_share: The share of a batch that has labels there, on average.
        mark: The rotated accuracy whose first iteration is told.
        num_monitored: Test images whose accuracy is followed in training.
        num_samples: Images drawn from each model.
        num_of_class: Images drawn of each class.
        num_outliers: Images of each other kind, and as many test images.
        num_attacked: Test images that are changed to mislead the model.
        radii: The largest change of a pixel in these attacks.
        fit: How models are trained; `negatives` and the epochs are set by the model
            and the data set.
    """

    dataset: Literal["digits", "fashion-mnist"] = "digits"
    download: bool = True
    models: tuple[str, ...] = tuple(MODELS)
    num_seeds: int = 3
    fields: tuple[int, ...] = (4, 8, 8, 8, 8, 8, 16, 16)
    epochs_digits: int = 8
    epochs_fashion_mnist: int = 15
    labels_a_class: int = 10
    labelled_share: float = 0.25
    mark: float = 0.8
    num_monitored: int = 1_000
    num_samples: int = 256
    num_of_class: int = 8
    num_outliers: int = 1_000
    num_attacked: int = 300
    radii: tuple[float, ...] = (0.01, 0.02, 0.04, 0.08)
    fit: FitConfig = FitConfig()  # noqa: RUF009


def stages(
    config: ImagesConfig, seed: int, kept: pathlib.Path | None = None
) -> dict[str, Stage]:
    if not config.models or len(config.fields) < max(_POOL_AFTER[config.dataset]):
        raise ValueError(
            "`images` needs at least one of `models`, and `fields` of at least "
            f"{max(_POOL_AFTER[config.dataset])} layers, but got {config.models!r} and "
            f"{config.fields!r}."
        )
    if not config.radii:
        raise ValueError("`images` needs at least one of `radii`, but got none.")
    if config.fit.batch_size > _FEWEST:
        raise ValueError(
            f"`fit.batch_size` must be at most {_FEWEST}, but got "
            f"{config.fit.batch_size!r}."
        )
    unknown = ", ".join(sorted(set(config.models) - set(MODELS)))
    if unknown:
        raise ValueError(f"`models` must be of {', '.join(MODELS)}, but got {unknown}.")
    if config.fit.epoch_batches is None:
        raise ValueError("`images` needs `fit.epoch_batches`, the batches of an epoch.")
    if not 0 < config.labelled_share < 1:
        raise ValueError(
            "`labelled_share` must be between 0 and 1, but got "
            f"{config.labelled_share!r}."
        )

    sets = image_sets(config.dataset, config.download, config.num_outliers)

    def learned(name: str, index: int) -> Outcome:
        data_key, fit_key, judge_key = jr.split(jr.fold_in(jr.key(seed + index), 0), 3)
        known = training_images(config, name, sets, seed + index)
        fitted = trained(
            data_key, fit_key, config, name, sets, known,
            kept and kept / f"{name}{SEED}{index}.eqx",
        )  # fmt: skip
        return judged(judge_key, config, sets, fitted, known)

    def exact() -> Outcome:
        keys = jr.split(jr.key(seed), config.num_seeds)
        half = sets.rotated[: len(halves(sets)[0])]
        parts = [jr.permutation(key, half)[: config.num_samples] for key in keys]
        distances = [
            sample_distance(key, part, sets)
            for key, part in zip(keys, parts, strict=True)
        ]
        return Outcome(
            metrics={"energy_distance": np.array(list(map(float, distances)))},
            samples=np.concatenate([np.asarray(part) for part in parts]),
        )

    compared = tuple(name for name in config.models if name not in ASIDE)
    aside = tuple(name for name in config.models if name in ASIDE)
    return (
        seeded(learned, config.num_seeds, compared)
        | seeded(learned, 1, aside)
        | {FLOOR: exact}
    )


def network(key: Key, config: ImagesConfig, name: str, sets: ImageSets) -> SteerableCNN:
    """Return the network of a model, untrained."""
    shape = sets.train.shape[1:]
    scale = float(jnp.sqrt(jnp.mean(sets.train**2)))
    steerable = SteerableCNN(
        shape, config.fields, pool_after=_POOL_AFTER[config.dataset],
        out_size=len(sets.names), scale=scale, key=key,
    )  # fmt: skip
    return plain_twin(steerable, key=key) if name == "plain" else steerable


def trained(
    network_key: Key,
    fit_key: Key,
    config: ImagesConfig,
    name: str,
    sets: ImageSets,
    known: tuple[Particles, Int[Array, " particle"]],
    checkpoint: pathlib.Path | None,
) -> Fitted:
    """Train a model on images with their labels or -1."""
    negatives = {
        "plain": "svgd",
        "equivariant-svgd": "svgd",
        "equivariant-langevin": "langevin",
    }
    epochs = {
        "digits": config.epochs_digits,
        "fashion-mnist": config.epochs_fashion_mnist,
    }
    settings = dataclasses.replace(
        config.fit,
        num_epochs=epochs[config.dataset],
        negatives=negatives.get(name, "esvgd"),
    )
    if name.startswith("semi"):  # at the full rate some never leave the start
        settings = dataclasses.replace(
            settings, learning_rate=settings.learning_rate / 2
        )
    if name in ("discriminative", "semi-discriminative"):
        settings = dataclasses.replace(
            settings, contrastive=0.0, score_matching=0.0, regularization=0.0
        )
    data, labels = known
    num = config.num_monitored
    return fit(
        fit_key, JointEnergy(network(network_key, config, name, sets)), data, settings,
        labels=labels,
        monitor=accuracy_monitor(sets.rotated[:num], sets.test_labels[:num]),
        progress=True, checkpoint=checkpoint,
    )  # fmt: skip


def training_images(
    config: ImagesConfig, name: str, sets: ImageSets, seed: int
) -> tuple[Particles, Int[Array, " particle"]]:
    """Return the images a model learns from, with labels or -1; labelled ones first."""
    if not name.startswith("semi"):
        return sets.train, sets.labels
    return few_labels(sets, config.labels_a_class, config.labelled_share, seed)


def judged(
    key: Key,
    config: ImagesConfig,
    sets: ImageSets,
    fitted: Fitted,
    known: tuple[Particles, Int[Array, " particle"]],
) -> Outcome:
    """Measure what a joint energy is for.

    Args:
        key: The source of randomness.
        config: The settings.
        sets: The images.
        fitted: The model.
        known: The images it learned from, with their labels or -1.
    """
    energy = fitted.energy
    assert isinstance(energy, JointEnergy)
    joint_key, class_key, start_key, distance_key = jr.split(key, 4)
    samples = fitted.sample(joint_key, config.num_samples)
    of_class = [
        fitted.sample(jr.fold_in(class_key, label), config.num_of_class, label=label)
        for label in range(len(sets.names))
    ]
    start = fitted.start.sample(start_key, config.num_samples)
    numbers, arrays = classification(energy, sets)
    found, densities = detection(energy, sets, config.num_outliers, known)
    densities = {
        name: values / config.fit.temperature for name, values in densities.items()
    }
    robust = robustness(energy, sets, config.radii, config.num_attacked)
    history = {name: values[None] for name, values in fitted.history.items()}
    history["step"] = history.pop("epoch") * config.fit.epoch_batches
    reached = history["step"][history["rotated_accuracy"] >= config.mark]
    numbers |= found | {
        _mark(config): reached[0] if len(reached) else np.inf,
        f"accuracy_attacked_{config.radii[0]:g}": robust[1],
        "energy_distance": sample_distance(distance_key, samples, sets),
        "energy_distance_of_start": sample_distance(distance_key, start, sets),
        "rollbacks": len(fitted.events),
    }
    arrays |= densities | {
        "by_class": np.stack([np.asarray(x) for x in of_class]),
        "start": np.asarray(start[:SHOWN]),
        "robust": robust,
    }
    return Outcome(
        metrics=metrics_of(numbers),
        samples=np.asarray(samples),
        history=history,
        arrays={name: np.asarray(values)[None] for name, values in arrays.items()},
        events=fitted.events,
    )


def compare(config: ImagesConfig, outcomes: Mapping[str, Outcome]) -> dict[str, dict]:
    """Return the iterations to the mark, E-SVGD's over SVGD's, seed by seed."""
    both = ("equivariant-svgd", "equivariant")
    if not all(name in outcomes for name in both):
        return {}
    name = _mark(config)
    vanilla, ours = (outcomes[model].metrics[name] for model in both)
    num = min(len(vanilla), len(ours))
    with np.errstate(invalid="ignore"):  # never over never is no number
        return {"equivariant": {f"{name}_ratio": ours[:num] / vanilla[:num]}}


def _mark(config: ImagesConfig) -> str:
    return f"iterations_to_{config.mark:.2g}"


_QUICK = FitConfig(
    epoch_batches=50,
    batch_size=64,
    num_particles=32,
    buffer_size=1_024,
    num_steps=3,
    reset_probability=0.1,
    start="normals",
    temperature=1e-4,
    contrastive=1e-6,
    langevin=3e-6,
    stein_step=2e-4,
    score_clip=1e6,
    data_noise=0.01,
    regularization=0.003,
    learning_rate=1e-2,
    warm_up=20,
    gradient_clip=1.0,
    ema=0.99,
    energy_limit=1e4,
    sample_steps=30,
    sample_at_once=64,
)

IMAGES = Experiment(
    name="images",
    figure="figure FMNIST, section 5 and appendix E.3",
    summary="learn upright images as a C4-invariant joint energy, classify turned ones",
    presets={
        "smoke": ImagesConfig(
            num_seeds=2, fields=(2, 2, 2, 2), epochs_digits=2, epochs_fashion_mnist=2,
            num_monitored=50, num_samples=16, num_of_class=2, num_outliers=20,
            num_attacked=10, radii=(0.01, 0.04),
            fit=dataclasses.replace(
                _QUICK, epoch_batches=2, num_steps=1, sample_steps=3, buffer_size=64,
                num_particles=8, batch_size=16,
            ),
        ),
        "quick": ImagesConfig(fit=_QUICK),
        "paper": ImagesConfig(
            fields=(16, 16, 16, 32, 32, 32, 32, 32),
            epochs_digits=200,
            epochs_fashion_mnist=1_200,
            fit=dataclasses.replace(
                _QUICK, epoch_batches=235, num_particles=64, buffer_size=10_000,
                num_steps=20, learning_rate=1e-3, ema=0.999,
            ),
        ),
    },
    stages=stages,
    compare=compare,
    trains=True,
    draw=draw,
    notes=NOTES,
    captions=CAPTIONS,
)  # fmt: skip
