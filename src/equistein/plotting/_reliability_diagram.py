"""How far a classifier's confidence can be trusted."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from equistein.plotting._style import color, EXACT, grid, plain

_LEAST = 20


def reliability_diagram(
    models: Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]],
    notes: Sequence[str],
    num_points: int,
) -> Figure:
    """Draw accuracy against confidence, a panel a model.

    Bins of fewer than 20 points are left out, for theirs would be chance.

    Args:
        models: For each model the confidence, the accuracy and the proportion of
            the points in each bin of confidence.
        notes: What to write into each panel.
        num_points: The number of points.
    """
    figure, axes = grid(1, len(models), width=2.3, height=2.6)
    for index, (panel, name) in enumerate(zip(axes[0], models, strict=True)):
        some = num_points * models[name][2] >= _LEAST - 0.5  # proportions are rounded
        confidence, accuracy, proportion = (values[some] for values in models[name])
        shade = color(index)
        panel.plot([0, 1], [0, 1], color=EXACT, linewidth=0.8, linestyle="--")
        panel.bar(confidence, proportion, width=0.05, alpha=0.25, color=shade)
        panel.plot(confidence, accuracy, "o-", ms=3, color=shade, linewidth=1)
        panel.text(0.04, 0.93, notes[index], fontsize=8, va="top")
        panel.set(xlim=(0, 1), ylim=(0, 1), xlabel="confidence")
        panel.set_title(name, fontsize=9)
        plain(panel)
    axes[0, 0].set_ylabel("accuracy; bars: proportion of images")
    return figure
