"""A joint energy model of images that knows quarter turns (paper, section 5, E.3)."""

import dataclasses
import functools
from typing import Any

import equinox as eqx
import jax.random as jr
import numpy as np

from equistein.diffusion import image_bits, MixtureNoiseEnergy
from equistein.groups import ImageRotations
from equistein.models import ContrastiveSettings, ImageSettings
from equistein.plotting import image_rows
from equistein.runs import FLOOR, Outcome, seed_outcome
from equistein.training import Monitor, Normals
from experiments._engine import Entry, Experiment, Figure, Key, Particles, Shown, Trial
from experiments._figures import curves
from experiments._image_models import ImagesConfig, model_of, MODELS
from experiments._image_scores import (
    classification,
    classifier,
    detection,
    rotated_accuracy,
    sample_scores,
    turned,
)

_MARK = 0.8  # the rotated accuracy whose first iteration is measured
_TO_MARK = f"iterations_to_{_MARK:g}"
_NUM_OF_CLASS = 8  # images drawn of each class
_NUM_SHOWN = 16  # images of a row
_ASIDE = ("density-turned", "density-mirrored")  # which have one seed only


def entries(config: ImagesConfig) -> list[Entry]:
    """Return the models and the floor."""

    def class_normals(trial: Trial) -> Outcome:
        sets, key = config.sets, trial.key(2)
        normals = Normals(sets.train, ImageRotations(), sets.labels, len(sets.names))
        samples = normals.sample(key, config.num_samples)
        return seed_outcome(_quality(config, key, samples), samples)

    def held_out(trial: Trial) -> Outcome:
        sets, key = config.sets, trial.key(1)
        half = sets.rotated[: len(sets.halves[0])]
        part = jr.permutation(key, half)[: config.num_samples]
        return seed_outcome(_quality(config, key, part), part)

    models = {name: MODELS[name] for name in config.models}
    return [
        *(
            Entry(
                name, functools.partial(_learned, config, name), note, label=label,
                num_seeds=1 if name in _ASIDE else None, trains=True,
            )
            for name, (label, note) in models.items()
        ),
        Entry(
            "class-normals",
            class_normals,
            "Draws of normal distributions with the mean and covariance of each class, "
            "where the samples of contrastive divergence start: what a model adds is "
            "the difference.",
            label="class normals",
        ),
        Entry(
            FLOOR,
            held_out,
            "The floor is what as many held-out images score against others, by the "
            "features of a fixed classifier that has seen turned images; that of the "
            "calibration error is what labels drawn from the model itself would have. "
            "`best` is the largest area of the four scores, chosen after the fact.",
            label="held-out images",
        ),
    ]  # fmt: skip


def _quality(config: ImagesConfig, key: Key, samples: Particles) -> dict[str, Any]:
    """Return how like real images samples are."""
    network = classifier(config.dataset, config.download, config.classifier_batches)
    return sample_scores(key, samples, config.sets, network)


def _learned(config: ImagesConfig, name: str, trial: Trial) -> Outcome:
    sets, num = config.sets, config.num_monitored
    network_key, fit_key, judge_key = jr.split(trial.key(0), 3)
    known = sets.train, sets.labels
    if name == "density-turned":
        known = turned(jr.fold_in(network_key, 1), sets.train), sets.labels
    model = model_of(network_key, config, name, known)
    # A partial's arrays are inputs of the compiled function, not constants in it.
    held_out = sets.rotated[:num], sets.test_labels[:num]
    fitted = model.fit(
        fit_key, *known, callbacks=[Monitor(eqx.Partial(rotated_accuracy, *held_out))],
        checkpoint=trial.checkpoint(), progress=True,
    )  # fmt: skip
    history = dict(fitted.history)
    steps = history["step"] = history.pop("epoch") * model.epoch_batches
    reached = steps[history["rotated_accuracy"] >= _MARK]
    energy = fitted.energy
    joint_key, class_key, quality_key = jr.split(judge_key, 3)
    samples = fitted.sample(joint_key, config.num_samples)
    numbers, arrays = classification(energy, sets), {}
    numbers |= detection(energy, sets, config.num_outliers, known) | {
        "rollbacks": len(fitted.events),
        _TO_MARK: reached[0] if len(reached) else np.inf,
        **_quality(config, quality_key, samples),
    }
    if trial.index == 0:
        draw = functools.partial(fitted.sample, num=_NUM_OF_CLASS)
        keys = [jr.fold_in(class_key, label) for label in range(len(sets.names))]
        drawn = [draw(key, label=label) for label, key in enumerate(keys)]
        arrays["by_class"] = np.stack([np.asarray(images) for images in drawn])
    if isinstance(energy, MixtureNoiseEnergy):
        numbers |= image_bits(
            jr.fold_in(judge_key, 1), energy, sets.upright,
            num_steps=config.num_annealed,
        )  # fmt: skip
    if name == "density-mirrored":
        mirrored = sets.rotated[:, :, ::-1]
        found = rotated_accuracy(mirrored, sets.test_labels, energy)
        numbers["mirrored_accuracy"] = found["rotated_accuracy"]
    return seed_outcome(
        numbers, samples, history=history, stacked=arrays, events=fitted.events
    )


def _samples(config: ImagesConfig, shown: Shown) -> Any | None:
    if not any("by_class" in out.arrays for _, out in shown):
        return None
    return image_rows({e.label: out.samples[:_NUM_SHOWN] for e, out in shown})


def _classes(config: ImagesConfig, shown: Shown) -> Any | None:
    outcomes = {entry.name: outcome for entry, outcome in shown}
    for name in ("density", "equivariant"):
        if name in outcomes:
            rows = outcomes[name].arrays["by_class"][0]
            return image_rows(dict(zip(config.sets.names, rows, strict=True)))
    return None


_QUICK = ContrastiveSettings(
    epoch_batches=50, batch_size=64, num_particles=32, buffer_size=1_024, num_steps=3,
    reset_probability=0.1, initial="normals", temperature=1e-4, langevin_step_size=3e-6,
    stein_step_size=2e-4, score_clip=1e6, data_noise=0.01, regularization=3e-5,
    learning_rate=1e-2, warm_up=20, gradient_clip=1.0, ema=0.99, energy_limit=1e8,
    sample_steps=30, sample_at_once=64,
)  # fmt: skip

IMAGES = Experiment(
    name="images",
    figure="figure 6, section 5 and appendix E.3",
    headlines=(
        "rotated_accuracy",
        "calibration_error",
        "auroc_noise_log_density",
        "frechet_distance",
    ),
    summary="learn upright images as a C4-invariant joint energy, classify turned ones",
    presets={
        "smoke": ImagesConfig(
            num_seeds=2, fields=(2, 2, 2, 2), epochs_digits=2, epochs_fashion_mnist=2,
            models=("density", "density-plain", "equivariant", "discriminative"),
            num_monitored=50, num_samples=16, num_outliers=20,
            num_annealed=2, classifier_batches=2,
            density=ImageSettings(
                num_epochs=2, epoch_batches=2, batch_size=16, fields=(2, 2),
                num_blocks=1, sample_steps=3,
            ),
            fit=dataclasses.replace(
                _QUICK, epoch_batches=2, num_steps=1, sample_steps=3, buffer_size=64,
                num_particles=8, batch_size=16,
            ),
        ),
        "quick": ImagesConfig(
            density=ImageSettings(num_epochs=36, sample_steps=30), twin_epochs=64,
            fit=_QUICK,
        ),
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
    entries=entries,
    figures=(
        curves(
            "accuracy",
            "rotated_accuracy",
            "accuracy on rotated test images",
            x_label="training iteration",
            caption="The accuracy on held-out images, each turned by a random quarter, "
            "while training on upright ones: mean and range over the seeds.",
        ),
        Figure(
            "samples",
            _samples,
            "The first seed. Energies made for densities draw from noise. The others "
            "start at the class normals: where a row hardly differs from the "
            "classifier's, which knows no density, the model adds little to its "
            "starts. Samples of the equivariant models come in all orientations.",
        ),
        Figure(
            "classes",
            _classes,
            "Samples of each class by the equivariant energy, the first seed.",
        ),
    ),
    check=lambda config: config.sets,
)  # fmt: skip
