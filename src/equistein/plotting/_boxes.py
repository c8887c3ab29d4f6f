"""Box plots with the values themselves."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from equistein.plotting._style import chart, color_of, EXACT, legend


def boxes(
    groups: Mapping[str, np.ndarray],
    label: str,
    *,
    exact: tuple[float, str] | None = None,
    colors: Mapping[str, int] | None = None,
) -> Figure:
    """Draw a box plot with the values themselves, a box a name.

    Args:
        groups: For each name its values.
        label: What the values are.
        exact: A value to draw as a line, and what it is.
        colors: The number of each name's color; by default its place.
    """
    figure, panel = chart(label, width=1.2 * len(groups) + 2.2, height=3.6)
    values = [np.ravel(values) for values in groups.values()]
    middle = {"color": EXACT}
    panel.boxplot(values, widths=0.5, showfliers=False, medianprops=middle)
    panel.set_xticks(range(1, len(groups) + 1), list(groups), fontsize=8)
    for index, (name, these) in enumerate(zip(groups, values, strict=True)):
        places = index + 1 + np.linspace(-0.12, 0.12, these.size)
        shade = color_of(name, index, colors)
        panel.scatter(places, these, s=10, zorder=3, color=shade)
    legend(panel, exact)
    return figure
