"""A joint energy model of images that knows quarter turns (paper, section 5, E.3)."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein.data import class_names
from equistein.diffusion import MixtureNoiseEnergy
from equistein.energies import AbstractEnergy, JointEnergy
from equistein.groups import ImageRotations, Trivial
from equistein.models import (
    contrastive_model,
    ContrastiveSettings,
    image_bits,
    image_model,
    ImageSettings,
    Model,
)
from equistein.networks import plain_twin, SteerableCNN
from equistein.plotting import histograms, image_rows, reliability_diagram
from equistein.runs import FLOOR, Metric, Outcome, seed_outcome
from equistein.training import (
    AbstractObjective,
    Blurred,
    CrossEntropy,
    Fitted,
    Monitor,
    Normals,
)
from experiments._engine import Entry, Experiment, Trial
from experiments._figures import Curves, Own, Shown
from experiments._image_models import (
    classifier,
    completed,
    few_labels,
    ImagesConfig,
    LabeledPoints,
    long_chains,
    MODELS,
    POOL_AFTER,
    Trained,
    turned,
)
from experiments._image_scores import (
    classification,
    detection,
    halves,
    robustness,
    rotated_accuracy,
    sample_scores,
)
from experiments._types import Key, Particles

CLASS_NORMALS = "class-normals"
SHOWN = 16
"""The number of images of a row."""


def _reliability(config: ImagesConfig, shown: Shown) -> Any | None:
    models = [(e.label, out) for e, out in shown if "reliability" in out.arrays]
    if not models:
        return None
    return reliability_diagram(
        {label: tuple(out.arrays["reliability"][0]) for label, out in models},
        [f"ECE {out.metrics['calibration_error'][0]:.3f}" for _, out in models],
        int(models[0][1].arrays["num_judged"][0]),
    )


def _samples(config: ImagesConfig, shown: Shown) -> Any | None:
    joint = [(e, out) for e, out in shown if not e.name.startswith("semi")]
    if not any("by_class" in out.arrays for _, out in joint):
        return None
    return image_rows({e.label: out.samples[:SHOWN] for e, out in joint})


def _classes(config: ImagesConfig, shown: Shown) -> Any | None:
    for entry, out in shown:
        if entry.name == _shown_model(shown):
            names = class_names(config.dataset)
            return image_rows(dict(zip(names, out.arrays["by_class"][0], strict=True)))
    return None


def _completed(config: ImagesConfig, shown: Shown) -> Any | None:
    for _, out in shown:
        if "completed" in out.arrays:
            columns = np.moveaxis(out.arrays["completed"][0], 1, 0)
            ways = [f"completed {i}" for i in range(1, len(columns))]
            return image_rows(dict(zip(["test image", *ways], columns, strict=True)))
    return None


def _outliers(config: ImagesConfig, shown: Shown) -> Any | None:
    for entry, out in shown:
        if entry.name == _shown_model(shown):
            densities = {
                name.removeprefix("density_"): values[0]
                for name, values in out.arrays.items()
                if name.startswith("density_")
            }
            label = "-E(x), the log density up to a constant"
            return histograms(densities, None, label)
    return None


def _shown_model(shown: Shown) -> str:
    """Return the model whose classes and densities are shown."""
    known = {entry.name for entry, _ in shown}
    return "density" if "density" in known else "equivariant"


FIGURES = (
    Curves(
        "accuracy",
        "rotated_accuracy",
        "accuracy on rotated test images",
        x_label="training iteration",
        caption="The accuracy on held-out images, each turned by a random quarter, "
        "while training on upright ones: mean and range over the seeds.",
    ),
    Own(
        "reliability",
        _reliability,
        caption="Accuracy against confidence on turned images, the first seed; bars "
        "are the fractions of the images. On the dashed line confidence can be taken "
        "at its word. Bins of fewer than 20 images have no dot.",
    ),
    Curves(
        "robustness",
        lambda outcome: outcome.arrays.get("robust"),
        "accuracy on rotated test images",
        x=lambda outcome: outcome.arrays.get("radii"),
        x_label="largest change of a pixel",
        caption="The accuracy on turned images whose pixels were changed, each by at "
        "most the radius, to mislead the model (projected gradient attack, 10 steps): "
        "the first `num_attacked` images.",
    ),
    Own(
        "samples",
        _samples,
        caption="The first seed. Energies made for densities draw from noise. The "
        "others start at the class normals: where a row hardly differs from the "
        "classifier's, which knows no density, the model adds little to its starts. "
        "Samples of the equivariant models come in all orientations.",
    ),
    Curves(
        "long_chains",
        lambda outcome: outcome.arrays.get("chain_distances"),
        "Fréchet distance to held-out images",
        x=lambda outcome: outcome.arrays.get("chain_steps"),
        x_label="steps from noise to image",
        caption="The Fréchet distance of a few samples (`num_long`) of shorter and "
        "longer chains, in the features of the fixed classifier: the first seed.",
    ),
    Own(
        "classes",
        _classes,
        caption="Samples of each class by the equivariant energy, the first seed.",
    ),
    Own(
        "completed",
        _completed,
        caption="Test images, and draws of the energy made for densities that are held "
        "at the upper half of each.",
    ),
    Own(
        "outliers",
        _outliers,
        caption="The log density that the equivariant energy gives held-out images and "
        "others, the first seed.",
    ),
)


def check(config: ImagesConfig) -> None:
    """Raise `DataError` where the images are not available."""
    _ = config.sets


def entries(config: ImagesConfig) -> list[Entry]:
    """Return the models and the floor."""
    return [
        *(
            Entry(
                name, functools.partial(_learned, config, kind), kind.note,
                label=kind.label, num_seeds=1 if kind.aside else None, trains=True,
            )
            for name, kind in ((name, MODELS[name]) for name in config.models)
        ),
        Entry(
            CLASS_NORMALS,
            functools.partial(_class_normals, config),
            "Draws of normal distributions with the mean and covariance of each class, "
            "where the samples of contrastive divergence start: what a model adds is "
            "the difference.",
            label="class normals",
        ),
        Entry(
            FLOOR,
            functools.partial(_held_out, config),
            "The floor is what as many held-out images score against others, by the "
            "features of a fixed classifier that has seen turned images. The "
            "calibration "
            "error's floor is what labels drawn from the model itself would have, with "
            "as many images. `best` is the largest area of the four scores, chosen "
            "after the fact.",
            label="held-out images",
        ),
    ]  # fmt: skip


def _held_out(config: ImagesConfig, trial: Trial) -> Outcome:
    sets, key = config.sets, trial.key(1)
    half = sets.rotated[: len(halves(sets)[0])]
    part = jr.permutation(key, half)[: config.num_samples]
    return seed_outcome(_quality(config, key, part), part)


def _class_normals(config: ImagesConfig, trial: Trial) -> Outcome:
    sets, key = config.sets, trial.key(2)
    normals = Normals(sets.train, ImageRotations(), sets.labels, len(sets.names))
    samples = normals.sample(key, config.num_samples)
    return seed_outcome(_quality(config, key, samples), samples)


def _quality(config: ImagesConfig, key: Key, samples: Particles) -> dict[str, Any]:
    """Return how like real images samples are."""
    network = classifier(config.dataset, config.download, config.classifier_batches)
    return sample_scores(key, samples, config.sets, network)


def _learned(config: ImagesConfig, kind: Trained, trial: Trial) -> Outcome:
    sets, num = config.sets, config.num_monitored
    network_key, fit_key, judge_key = jr.split(trial.key(0), 3)
    known = sets.train, sets.labels
    if kind.few_labels:
        known = few_labels(
            sets, config.labels_a_class, config.labeled_fraction, trial.seed
        )
    if kind.turned:
        known = turned(jr.fold_in(network_key, 1), sets.train), sets.labels
    model = model_of(network_key, config, kind, known)
    # A partial's arrays are inputs of the compiled function, not constants in it.
    held_out = sets.rotated[:num], sets.test_labels[:num]
    fitted = model.fit(
        fit_key, *known, callbacks=[Monitor(eqx.Partial(rotated_accuracy, *held_out))],
        checkpoint=trial.checkpoint(), progress=True,
    )  # fmt: skip
    history = dict(fitted.history)
    steps = history["step"] = history.pop("epoch") * model.epoch_batches
    reached = steps[history["rotated_accuracy"] >= config.mark]
    numbers, arrays, samples = judged(judge_key, config, fitted, known)
    if kind.density:
        density_key = jr.fold_in(judge_key, 1)
        assert isinstance(fitted.energy, MixtureNoiseEnergy)
        numbers |= image_bits(
            density_key, fitted.energy, sets.upright, num_steps=config.num_annealed
        )
        if trial.index == 0:
            quality = functools.partial(_quality, config)
            arrays |= long_chains(
                density_key, fitted, config.chain_lengths, config.num_long, quality
            )
            arrays["completed"] = completed(density_key, fitted, sets)
    if kind.mirrored:
        energy, mirrored = fitted.energy, sets.rotated[:, :, ::-1]
        assert isinstance(energy, AbstractEnergy)
        found = rotated_accuracy(mirrored, sets.test_labels, energy)
        numbers["mirrored_accuracy"] = found["rotated_accuracy"]
    numbers[_mark(config)] = reached[0] if len(reached) else np.inf
    return seed_outcome(
        numbers, samples, history=history, stacked=arrays, events=fitted.events
    )


def model_of(
    key: Key, config: ImagesConfig, kind: Trained, known: LabeledPoints
) -> Model:
    """Return a model, untrained, with its training."""
    sets, settings = config.sets, config.fit
    if kind.density:
        return _density_model(key, config, kind, known)
    network = SteerableCNN(
        sets.train.shape[1:], config.fields, pool_after=POOL_AFTER[config.dataset],
        out_size=len(sets.names), scale=float(jnp.sqrt(jnp.mean(sets.train**2))),
        key=key,
    )  # fmt: skip
    if not kind.steerable:
        network = plain_twin(network, key=key)
    digits = config.dataset == "digits"
    num_epochs = config.epochs_digits if digits else config.epochs_fashion_mnist
    # With few labels, some models never leave the start at the full rate.
    rate = settings.learning_rate / (2 if kind.few_labels else 1)
    bare = dataclasses.replace(
        settings, num_epochs=num_epochs, kernel=kind.kernel, learning_rate=rate,
        label_weight=0.0, data_noise=0.0,
    )  # fmt: skip
    energy = JointEnergy(network, settings.temperature)
    model = contrastive_model(energy, *known, bare)
    objective: AbstractObjective = CrossEntropy()
    if kind.contrastive:
        objective = config.contrastive * model.objective + objective
    if settings.data_noise:
        objective = Blurred(objective, settings.data_noise)
    return dataclasses.replace(model, objective=objective)


def _density_model(
    key: Key, config: ImagesConfig, kind: Trained, known: LabeledPoints
) -> Model:
    """Return the energy made for densities, or its twin without symmetry."""
    settings, group = config.density, ImageRotations(reflections=kind.mirrored)
    if not kind.steerable:  # of half the channels a layer, and as many parameters
        group = Trivial()
        fields = tuple(2 * num for num in settings.fields)
        settings = dataclasses.replace(
            settings,
            fields=fields,
            num_epochs=config.twin_epochs or settings.num_epochs,
        )
    return image_model(key, group, *known, settings)


def judged(
    key: Key, config: ImagesConfig, fitted: Fitted, known: LabeledPoints
) -> tuple[dict[str, Any], dict[str, Any], Float[Array, "sample *shape"]]:
    """Measure what a joint energy is for: metrics, arrays for figures, and samples."""
    energy, sets = fitted.energy, config.sets
    assert isinstance(energy, AbstractEnergy)
    joint_key, class_key, quality_key = jr.split(key, 3)
    samples = fitted.sample(joint_key, config.num_samples)
    of_class = [
        fitted.sample(jr.fold_in(class_key, label), config.num_of_class, label=label)
        for label in range(len(sets.names))
    ]
    numbers, arrays = classification(energy, sets)
    found, densities = detection(energy, sets, config.num_outliers, known)
    robust = robustness(energy, sets, config.radii, config.num_attacked)
    numbers |= found | {
        f"accuracy_attacked_{config.radii[0]:g}": robust[1],
        "rollbacks": len(fitted.events),
    }
    numbers |= _quality(config, quality_key, samples)
    arrays |= densities | {
        "by_class": np.stack([np.asarray(x) for x in of_class]),
        "robust": robust,
        "radii": np.array([0.0, *config.radii]),
    }
    return numbers, arrays, samples


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


_QUICK = ContrastiveSettings(
    epoch_batches=50, batch_size=64, num_particles=32, buffer_size=1_024, num_steps=3,
    reset_probability=0.1, initial="normals", temperature=1e-4, langevin_step_size=3e-6,
    stein_step_size=2e-4, score_clip=1e6, data_noise=0.01, regularization=3e-5,
    learning_rate=1e-2, warm_up=20, gradient_clip=1.0, ema=0.99, energy_limit=1e8,
    sample_steps=30, sample_at_once=64,
)  # fmt: skip

METRICS = {
    "auroc_noise_log_density": Metric(
        "noise distinguished from images by the log density (AUROC)", "higher"
    ),
    "accuracy": Metric("accuracy of the classes", "higher"),
    "batches": Metric("batches trained within the time"),
    "calibration_error": Metric("expected calibration error", "lower"),
    "energy_distance": Metric("distance of samples (energy distance)", "lower"),
    "frechet_distance": Metric("distance of images (Fréchet)", "lower"),
    "precision": Metric("samples that could be data (precision)", "higher"),
    "recall": Metric("data that could be samples (recall)", "higher"),
    "rotated_accuracy": Metric("accuracy on turned images", "higher"),
    "upright_accuracy": Metric("accuracy on upright images", "higher"),
}

IMAGES = Experiment(
    name="images",
    figure="figure 6, section 5 and appendix E.3",
    metrics=METRICS,
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
            num_monitored=50, num_samples=16, num_of_class=2, num_outliers=20,
            num_attacked=10, radii=(0.01, 0.04), num_annealed=2, num_long=4,
            chain_lengths=(1.0, 2.0), classifier_batches=2,
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
    figures=FIGURES,
    compare=compare,
    check=check,
)  # fmt: skip
