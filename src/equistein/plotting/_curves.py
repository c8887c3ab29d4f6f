"""Curves over steps."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from equistein.plotting._style import color_of, EXACT, grid, plain


def curves(
    series: Mapping[str, tuple[np.ndarray, np.ndarray]],
    label: str,
    *,
    exact: float | None = None,
    exact_label: str = "exact",
    log_x: bool = False,
    log_y: bool = False,
    limits: tuple[float, float] | None = None,
    x_label: str = "step",
    colors: Mapping[str, int] | None = None,
) -> Figure:
    """Draw curves over steps: the mean over seeds, and their range as a band.

    Args:
        series: For each name the steps `(record,)` and the values `(seed, record)`.
        label: What the values are.
        exact: The value of exact samples, a line.
        exact_label: What the line is.
        log_x: Whether the steps are on a logarithmic axis.
        log_y: Whether the values are.
        limits: The range of values shown.
        x_label: What the horizontal axis counts.
        colors: The number of each name's color; by default its place.
    """
    figure, axes = grid(1, 1, width=6.4, height=3.8)
    panel = axes[0, 0]
    for index, (name, (steps, values)) in enumerate(series.items()):
        shade = color_of(name, index, colors)
        panel.plot(steps, values.mean(axis=0), color=shade, label=name)
        panel.fill_between(
            steps, values.min(axis=0), values.max(axis=0), color=shade,
            alpha=0.2, linewidth=0,
        )  # fmt: skip
    if exact is not None:
        panel.axhline(
            exact, color=EXACT, linewidth=1, linestyle="--", label=exact_label
        )
    if log_x:
        panel.set_xscale("log")
    if log_y:
        panel.set_yscale("log")
    if limits is not None:
        panel.set_ylim(*limits)
    panel.set_xlabel(x_label)
    panel.set_ylabel(label)
    panel.legend(fontsize=8, frameon=False)
    plain(panel)
    return figure
