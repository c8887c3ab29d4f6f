"""What something costs against a number."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from equistein.plotting._style import color, grid, plain


def costs(rows: Mapping[str, np.ndarray], numbers: np.ndarray, label: str) -> Figure:
    """Draw what something costs against a number, both logarithmic.

    Args:
        rows: For each name its costs, NaN where they were not measured.
        numbers: The numbers, such as particles.
        label: What the cost is, with its unit.
    """
    figure, axes = grid(1, 1, width=6.4, height=4.2)
    panel = axes[0, 0]
    for index, (name, values) in enumerate(rows.items()):
        panel.loglog(numbers, values, "o-", color=color(index), label=name, ms=4)
    panel.set_xlabel("particles")
    panel.set_ylabel(label)
    panel.legend(fontsize=8, frameon=False)
    plain(panel)
    return figure
