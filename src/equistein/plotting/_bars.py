"""A few numbers of several models side by side."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from equistein.plotting._style import chart, color_of, legend


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
    figure, panel = chart(label, width=7.0, height=3.2)
    width = 0.8 / len(groups)
    for index, (name, values) in enumerate(groups.items()):
        places = np.arange(len(values)) + (index - (len(groups) - 1) / 2) * width
        shade = color_of(name, index, colors)
        panel.bar(places, values, width, color=shade, label=name)
    panel.set_xticks(range(len(labels)), labels, fontsize=8)
    legend(panel)
    return figure
