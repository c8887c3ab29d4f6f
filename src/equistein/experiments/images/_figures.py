"""The pictures of `images`."""

from typing import Any

import numpy as np

from equistein.data import class_names
from equistein.experiments.engine._figures import Curves, Own, Shown
from equistein.experiments.images._config import ImagesConfig
from equistein.plotting import histograms, image_rows, reliability_diagram
from equistein.runs import FLOOR, Outcome

SHOWN = 16
"""The number of images of a row."""


def _models(shown: Shown) -> list[tuple[str, Outcome]]:
    return [(entry.label, out) for entry, out in shown if entry.name != FLOOR]


def _equivariant(shown: Shown) -> Outcome | None:
    found = {entry.name: outcome for entry, outcome in shown}
    return found.get("equivariant")


def _reliability(config: ImagesConfig, shown: Shown) -> Any | None:
    models = _models(shown)
    if not models:
        return None
    return reliability_diagram(
        {label: tuple(out.arrays["reliability"][0]) for label, out in models},
        [f"ECE {out.metrics['calibration_error'][0]:.3f}" for _, out in models],
        int(models[0][1].arrays["num_judged"][0]),
    )


def _samples(config: ImagesConfig, shown: Shown) -> Any | None:
    joint = [(e, out) for e, out in shown if not e.name.startswith("semi")]
    models = _models(joint)
    if not models:
        return None
    rows = {"start": models[0][1].arrays["start"][0][:SHOWN]}
    return image_rows(rows | {e.label: out.samples[:SHOWN] for e, out in joint})


def _classes(config: ImagesConfig, shown: Shown) -> Any | None:
    found = _equivariant(shown)
    if found is None:
        return None
    names = class_names(config.dataset)
    return image_rows(dict(zip(names, found.arrays["by_class"][0], strict=True)))


def _outliers(config: ImagesConfig, shown: Shown) -> Any | None:
    found = _equivariant(shown)
    if found is None:
        return None
    densities = {
        name.removeprefix("density_"): values[0]
        for name, values in found.arrays.items()
        if name.startswith("density_")
    }
    return histograms(densities, None, "-E(x), the log density up to a constant")


def _robust(outcome: Outcome) -> np.ndarray | None:
    return outcome.arrays.get("robust")


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
        _robust,
        "accuracy on rotated test images",
        x=lambda outcome: outcome.arrays["radii"],
        x_label="largest change of a pixel",
        caption="The accuracy on turned images whose pixels were changed, each by at "
        "most the radius, to mislead the model (projected gradient attack, 10 steps): "
        "the first `num_attacked` images.",
    ),
    Own(
        "samples",
        _samples,
        caption="The first seed. From above: where samples start (normal distributions "
        "with the mean and covariance of each class), what each model makes of such "
        "starts, and held-out images. Samples of the equivariant models come in all "
        "orientations. All begin at the same draws with the same randomness: where a "
        "row hardly differs from the classifier's, which knows no density, the model "
        "adds little to its starts.",
    ),
    Own(
        "classes",
        _classes,
        caption="Samples of each class by the equivariant model, the first seed.",
    ),
    Own(
        "outliers",
        _outliers,
        caption="The log density that the equivariant model gives held-out images and "
        "others, the first seed.",
    ),
)
