"""The figures of learned planar densities, and how soon they are learned."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from equistein.experiments.engine._figures import AbstractFigure, Curves, Own, Shown
from equistein.experiments.learned._planar import PlanarConfig, REACH
from equistein.plotting import planar_energies
from equistein.runs import Outcome

_SHOWN = 256  # samples
_MARGIN = 5.0  # around the largest radius


def planar_figures(lowest: float) -> tuple[AbstractFigure, ...]:
    """Return the densities side by side, and the curves of the likelihood.

    Args:
        lowest: How far below the exact likelihood the curves are shown.
    """
    return (
        Own(
            "energies",
            _energies,
            caption="The first seed: the density, normalized by quadrature, with "
            "samples from fresh starts; with classes also where each is the likelier.",
        ),
        Curves(
            "likelihood",
            "log_likelihood",
            "held-out log-likelihood (nats)",
            x_label="epoch",
            level="true_log_likelihood",
            level_label="exact",
            limits=lambda level: (level - lowest, level + 0.3),
        ),
    )


def _energies(config: PlanarConfig, shown: Shown) -> Any:
    columns, titles = {}, []
    for entry, outcome in shown:
        arrays = {name: values[0] for name, values in outcome.arrays.items()}
        drawn = zip(arrays["log_density"], arrays["drawn"], strict=True)
        panels = [(np.exp(d), x[:_SHOWN], "density") for d, x in drawn]
        titles = ["p(x)", *(f"p(x | y = {k})" for k in range(len(panels) - 1))]
        if "decision" in arrays:
            panels = [(arrays["decision"], None, "boundary"), *panels]
            titles = ["decision boundary", *titles]
        columns[entry.label] = panels
    reach = max(config.radii)
    return planar_energies(columns, titles, REACH * reach, reach + _MARGIN)


def epochs_to_svgd(
    config: PlanarConfig, outcomes: Mapping[str, Outcome]
) -> dict[str, dict[str, np.ndarray]]:
    """Return how soon each equivariant model is as good as SVGD's is at the end.

    The last likelihood of the equivariant energy trained with vanilla SVGD sets the
    mark, seed by seed; `epochs_to_svgd` is the first epoch looked at that reaches it,
    and `epochs_ratio` that of E-SVGD over that of SVGD. Never is infinity.
    """
    both = ("equivariant-svgd", "equivariant")
    if not all(name in outcomes for name in both):
        return {}
    curves = [outcomes[name].history["log_likelihood"] for name in both]
    num = min(len(curve) for curve in curves)
    steps, marks = outcomes[both[0]].history["step"], curves[0][:num, -1:]
    svgd, ours = (
        np.where(curve[:num] >= marks, steps[:1], np.inf).min(axis=1)
        for curve in curves
    )
    return {
        both[0]: {"epochs_to_svgd": svgd},
        both[1]: {"epochs_to_svgd": ours, "epochs_ratio": ours / svgd},
    }
