"""A few numbers of several models side by side."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from equistein.plotting._style import color_of, grid, plain


def bars(
    groups: Mapping[str, np.ndarray],
    labels: list[str],
    label: str,
    *,
    colors: Mapping[str, int] | None = None,
) -> Figure:
    """Draw the same few numbers for several models side by side.

    Args:
        groups: For each model its numbers.
        labels: What each number belongs to.
        label: What the numbers are.
        colors: The number of each model's color; by default its place.
    """
    figure, axes = grid(1, 1, width=7.0, height=3.2)
    panel, width = axes[0, 0], 0.8 / len(groups)
    for index, (name, values) in enumerate(groups.items()):
        places = np.arange(len(values)) + (index - (len(groups) - 1) / 2) * width
        shade = color_of(name, index, colors)
        panel.bar(places, values, width, color=shade, label=name)
    panel.set_xticks(range(len(labels)), labels, fontsize=8)
    panel.set_ylabel(label)
    panel.legend(fontsize=8, frameon=False)
    plain(panel)
    return figure
