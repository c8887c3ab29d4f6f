"""The pictures of `images`."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from equistein.data import class_names
from equistein.plotting import curves, histograms, image_rows, reliability_diagram
from equistein.runs import FLOOR, Outcome

MODELS = {
    "plain": "plain JEM, SVGD",
    "equivariant-svgd": "equivariant JEM, SVGD",
    "equivariant-langevin": "equivariant JEM, SGLD",
    "equivariant": "equivariant JEM, E-SVGD",
    "discriminative": "equivariant classifier",
    "semi-supervised": "JEM, few labels",
    "semi-discriminative": "classifier, few labels",
}
"""The models by name: three of the paper, and what a joint energy is compared with."""

ASIDE = ("equivariant-langevin", "semi-supervised", "semi-discriminative")
"""Models of one seed, beside those that the experiment compares."""

SHOWN = 16
"""The number of images of a row."""

NOTES = {
    "plain": "A CNN without symmetry, of as many parameters, trained on upright images "
    "as all the others.",
    "equivariant-svgd": "The C4-steerable network; its particles feel one another "
    "upright only.",
    "equivariant-langevin": "The same network; its particles are Langevin chains that "
    "do not feel one another at all.",
    "equivariant": "The same network; particles feel one another across orbits. "
    "The ratio is that of its iterations over those of equivariant-svgd, both read off "
    "once an epoch, from the running mean of the weights.",
    "discriminative": "The same network trained as a classifier alone; its samples "
    "come from the same starts and steps, and show what these do without a density.",
    "semi-supervised": "The joint energy with a few labels of each class; all other "
    "images have none. Both models of few labels learn at half the rate.",
    "semi-discriminative": "The classifier with the same labels, and nothing else; "
    "the typicality of both rests on these labels alone.",
    "floor": "held-out images",
    "floor_note": "The floor is the energy distance of as many held-out images to "
    "others. energy_distance_of_start is that of the normal laws that samples start "
    "from: what a model adds is the difference. The calibration error's floor is what "
    "labels drawn from the model itself would have, with as many images. `best` is the "
    "largest area of the four scores, chosen after the fact.",
}
CAPTIONS = {
    "accuracy": "The accuracy on held-out images, each turned by a random quarter, "
    "while training on upright ones: mean and range over the seeds.",
    "samples": "The first seed. From above: where samples start (normal laws with the "
    "mean and covariance of each class), what each model makes of such starts, and "
    "held-out images. Samples of the equivariant models come in all orientations. All "
    "begin at the same draws with the same randomness: where a row hardly differs from "
    "the classifier's, which knows no density, the model adds little to its starts.",
    "classes": "Samples of each class by the equivariant model, the first seed.",
    "reliability": "Accuracy against confidence on turned images, the first seed; bars "
    "are the shares of the images. On the dashed line confidence can be taken at its "
    "word. Bins of fewer than 20 images have no dot.",
    "robustness": "The accuracy on turned images whose pixels were changed, each by at "
    "most the radius, to mislead the model (projected gradient, 10 steps): the "
    "first `num_attacked` images.",
    "outliers": "The log density that the equivariant model gives "
    "held-out images and others, the first seed.",
}


def draw(config: Any, outcomes: Mapping[str, Outcome]) -> dict:
    """Return the figures of the models that are there."""
    models = {name: outcomes[name] for name in MODELS if name in outcomes}
    if not models:
        return {}
    joint = {name: o for name, o in models.items() if not name.startswith("semi")}
    figures = {
        "accuracy": curves(
            {
                MODELS[name]: (o.history["step"][0], o.history["rotated_accuracy"])
                for name, o in models.items()
            },
            "accuracy on rotated test images",
            x_label="training iteration",
        ),
        "reliability": reliability_diagram(
            {
                MODELS[name]: tuple(o.arrays["reliability"][0])
                for name, o in models.items()
            },
            [f"ECE {o.metrics['calibration_error'][0]:.3f}" for o in models.values()],
            int(next(iter(models.values())).arrays["num_judged"][0]),
        ),
        "robustness": curves(
            {
                MODELS[name]: (
                    np.array([0.0, *config.radii]),
                    o.arrays["robust"],
                )
                for name, o in models.items()
            },
            "accuracy on rotated test images",
            x_label="largest change of a pixel",
        ),
    }  # fmt: skip
    if joint:
        rows = {"start": next(iter(joint.values())).arrays["start"][0][:SHOWN]}
        rows |= {MODELS[name]: o.samples[:SHOWN] for name, o in joint.items()}
        if FLOOR in outcomes:
            rows["held-out images"] = outcomes[FLOOR].samples[:SHOWN]
        figures["samples"] = image_rows(rows)
    if "equivariant" in models:
        arrays = models["equivariant"].arrays
        by_class = arrays["by_class"][0]
        figures["classes"] = image_rows(
            dict(zip(class_names(config.dataset), by_class, strict=True))
        )
        figures["outliers"] = histograms(
            {
                name.removeprefix("density_"): values[0]
                for name, values in arrays.items()
                if name.startswith("density_")
            },
            None,
            "-E(x) / T, the log density up to a constant",
        )
    return figures
