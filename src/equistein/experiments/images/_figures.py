"""The pictures of `images`."""

from typing import Any

import numpy as np

from equistein.data import class_names
from equistein.experiments.engine._figures import Curves, Own, Shown
from equistein.experiments.images._config import ImagesConfig
from equistein.plotting import histograms, image_rows, reliability_diagram

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
