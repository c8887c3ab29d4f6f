"""Box plots with the values themselves."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from equistein.plotting._style import color_of, EXACT, grid, plain


def boxes(
    groups: Mapping[str, np.ndarray],
    label: str,
    *,
    exact: float | None = None,
    exact_label: str = "exact",
    colors: Mapping[str, int] | None = None,
) -> Figure:
    """Draw a box plot with the values themselves, a box a name.

    Args:
        groups: For each name its values.
        label: What the values are.
        exact: A value to draw as a line.
        exact_label: What the line is.
        colors: The number of each name's color; by default its place.
    """
    figure, axes = grid(1, 1, width=1.2 * len(groups) + 2.2, height=3.6)
    panel = axes[0, 0]
    panel.boxplot(
        [np.ravel(values) for values in groups.values()], widths=0.5, showfliers=False,
        medianprops={"color": EXACT},
    )  # fmt: skip
    panel.set_xticks(range(1, len(groups) + 1), list(groups), fontsize=8)
    for index, (name, values) in enumerate(groups.items()):
        spread = np.linspace(-0.12, 0.12, np.size(values))
        panel.scatter(
            index + 1 + spread,
            np.ravel(values),
            s=10,
            zorder=3,
            color=color_of(name, index, colors),
        )
    if exact is not None:
        panel.axhline(
            exact, color=EXACT, linewidth=1, linestyle="--", label=exact_label
        )
        panel.legend(fontsize=8, frameon=False)
    panel.set_ylabel(label)
    plain(panel)
    return figure
