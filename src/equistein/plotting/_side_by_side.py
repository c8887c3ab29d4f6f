"""Histograms of several quantities, of data and samples on each other."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from equistein.plotting._style import color, EXACT, grid, plain

_COLUMNS = 4
_BINS = 30


def side_by_side(panels: Mapping[str, Mapping[str, np.ndarray]]) -> Figure:
    """Draw each quantity in a panel, of data and of samples.

    Args:
        panels: By label, with its unit, the values by name, `data` the first. Whole
            numbers have a bin each; others are shown up to the 2 % at either end of
            all values.
    """
    columns = min(_COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    figure, axes = grid(rows, columns, width=2.6, height=2.0)
    for panel in axes.ravel()[len(panels) :]:
        panel.axis("off")
    for panel, (label, series) in zip(axes.ravel(), panels.items(), strict=False):
        edges = _edges(np.concatenate(list(series.values())))
        for index, (name, values) in enumerate(series.items()):
            shares = np.histogram(values, edges)[0] / max(1, len(values))
            shade = EXACT if index == 0 else color(index - 1)
            fill = {"fill": True, "alpha": 0.5} if index else {"linewidth": 1.2}
            panel.stairs(shares, edges, color=shade, label=name, **fill)
        panel.set_xlabel(label)
        panel.set_yticks([])
        plain(panel)
    axes[0, 0].legend(frameon=False, fontsize=8)
    return figure


def _edges(values: np.ndarray) -> np.ndarray:
    if np.issubdtype(values.dtype, np.integer):
        return np.arange(values.min(), values.max() + 2) - 0.5
    low, high = np.quantile(values, (0.02, 0.98))
    margin = 0.05 * (high - low) + 1e-6
    return np.linspace(low - margin, high + margin, _BINS + 1)
