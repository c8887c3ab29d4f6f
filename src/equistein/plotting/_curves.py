"""Curves over steps."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from equistein.plotting._style import chart, color_of, legend


def curves(
    series: Mapping[str, tuple[np.ndarray, np.ndarray]],
    label: str,
    *,
    exact: tuple[float, str] | None = None,
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
        exact: A value to draw as a line, such as that of exact samples, and what it is.
        log_x: Whether the steps are on a logarithmic axis.
        log_y: Whether the values are.
        limits: The range of values shown.
        x_label: What the horizontal axis counts.
        colors: The number of each name's color; by default its place.
    """
    figure, panel = chart(label, width=6.4, height=3.8)
    for index, (name, (steps, values)) in enumerate(series.items()):
        shade = color_of(name, index, colors)
        panel.plot(steps, values.mean(axis=0), color=shade, label=name)
        low, high = values.min(axis=0), values.max(axis=0)
        panel.fill_between(steps, low, high, color=shade, alpha=0.2, linewidth=0)
    if log_x:
        panel.set_xscale("log")
    if log_y:
        panel.set_yscale("log")
    panel.set(xlabel=x_label, ylim=limits)
    legend(panel, exact)
    return figure
