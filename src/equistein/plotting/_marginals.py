"""Marginals of a posterior whose labels may be swapped."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from equistein.plotting._style import color, grid, plain

_NUM_BINS = 50


def marginals(
    relabelled: Mapping[str, np.ndarray], invariant: Mapping[str, np.ndarray]
) -> Figure:
    """Draw marginals of relabelled draws, and beside them those no label enters.

    A row for each relabelled parameter, with a color for each label, beside the
    order statistics of the same row; then those without labels, two to a row.

    Args:
        relabelled: For each parameter with labels its draws, (draw, label).
        invariant: What does not depend on labels, (draw, number), those of the
            relabelled parameters first and in the same order.
    """
    num = len(relabelled)
    names = list(invariant)
    rest = names[num:]
    rows = num + -(-len(rest) // 2)
    figure, axes = grid(rows, 2, width=3.6, height=2.0)
    for row, name in enumerate(relabelled):
        _histograms(axes[row, 0], f"{name}, relabelled", relabelled[name])
        _histograms(axes[row, 1], names[row], invariant[names[row]])
    free = axes[num:].ravel()
    for panel, name in zip(free, rest, strict=False):
        _histograms(panel, name, invariant[name])
    for panel in free[len(rest) :]:
        panel.set_axis_off()
    return figure


def _histograms(panel: Axes, name: str, draws: np.ndarray) -> None:
    """Draw a histogram of each column."""
    bins = np.histogram_bin_edges(draws, _NUM_BINS)
    for i, column in enumerate(draws.T):
        panel.hist(column, bins.tolist(), density=True, color=color(i), alpha=0.6)
    panel.set_xlabel(name)
    panel.set_yticks([])
    plain(panel)
