"""Charts of numbers: curves, errors and boxes."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from equistein.plotting._style import (
    chart,
    color_of,
    Colors,
    EXACT,
    grid,
    legend,
    line_of,
    plain,
)


def curves(
    series: Mapping[str, tuple[np.ndarray, np.ndarray]],
    label: str,
    *,
    exact: tuple[float, str] | None = None,
    log_x: bool = False,
    log_y: bool = False,
    limits: tuple[float | None, float | None] | None = None,
    x_label: str = "step",
    colors: Colors = None,
) -> Figure:
    """Draw curves over steps: the mean over seeds, and their range as a band.

    Args:
        series: For each name the steps `(record,)` and the values `(seed, record)`.
        label: What the values are.
        exact: A value to draw as a line, such as that of exact samples, and what it is.
        log_x: Whether the steps are on a logarithmic axis.
        log_y: Whether the values are.
        limits: The range of values shown, None for an end that is that of the values.
        x_label: What the horizontal axis counts.
        colors: The number of each name's color; by default its place.
    """
    figure, panel = chart(label, height=3.8)
    for index, (name, (steps, values)) in enumerate(series.items()):
        shade = color_of(name, index, colors)
        line, marker = line_of(name, index, colors)
        panel.plot(
            steps, values.mean(axis=0), color=shade, linestyle=line, label=name,
            marker=marker if len(steps) == 1 else None,  # of which a line shows nothing
        )  # fmt: skip
        band = values.min(axis=0), values.max(axis=0)
        panel.fill_between(steps, *band, color=shade, alpha=0.2, linewidth=0)
    x_scale, y_scale = ("log" if log else "linear" for log in (log_x, log_y))
    panel.set(xlabel=x_label, xscale=x_scale, yscale=y_scale, ylim=limits)
    legend(panel, exact)
    return figure


def error_bars(
    series: Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]],
    label: str,
    *,
    x_label: str,
    colors: Colors = None,
) -> Figure:
    """Draw values with their standard errors over a quantity.

    Args:
        series: For each name where the values are, the values, and their errors; an
            error that is not finite is not drawn.
        label: What the values are.
        x_label: What the quantity is.
        colors: The number of each name's color; by default its place.
    """
    figure, panel = chart(label, height=3.8)
    for index, (name, (places, values, errors)) in enumerate(series.items()):
        line, marker = line_of(name, index, colors)
        panel.errorbar(
            places, values, np.where(np.isfinite(errors), errors, 0), label=name,
            color=color_of(name, index, colors), linestyle=line, marker=marker,
            markersize=3, linewidth=1.2, capsize=2,
        )  # fmt: skip
    panel.set(xlabel=x_label)
    if all(places.dtype.kind == "i" for places, *_ in series.values()):
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    legend(panel)
    return figure


def boxes(
    groups: Mapping[str, np.ndarray],
    label: str,
    *,
    exact: tuple[float, str] | None = None,
    colors: Colors = None,
    log: bool = False,
) -> Figure:
    """Draw a box plot with the values themselves, a row a name.

    Args:
        groups: For each name its values.
        label: What the values are.
        exact: A value to draw as a line, and what it is.
        colors: The number of each name's color; by default its place.
        log: Whether the axis is logarithmic.
    """
    figure, panel = chart("", width=7.0, height=0.34 * len(groups) + 1.1)
    values = [np.ravel(values) for values in groups.values()]
    panel.boxplot(
        values, widths=0.5, showfliers=False, medianprops={"color": EXACT},
        orientation="horizontal",
    )  # fmt: skip
    panel.set_yticks(range(1, len(groups) + 1), list(groups), fontsize=8)
    panel.invert_yaxis()
    panel.set(xlabel=label, xscale="log" if log else "linear")
    for index, (name, these) in enumerate(zip(groups, values, strict=True)):
        apart = 0.12 if these.size > 1 else 0.0
        places = index + 1 + np.linspace(-apart, apart, these.size)
        shade = color_of(name, index, colors)
        panel.scatter(these, places, s=10, zorder=3, color=shade)
    legend(panel, exact, upright=True)
    return figure


def parity(panels: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Figure:
    """Draw learned values over exact ones, a panel a quantity, with the diagonal.

    Args:
        panels: For each label, with its unit, the exact and the learned values.
    """
    figure, axes = grid(1, len(panels), width=3.6, height=3.4)
    for index, (label, pair) in enumerate(panels.items()):
        panel, ends = axes[0, index], [np.min(pair), np.max(pair)]
        panel.plot(ends, ends, color=EXACT, linewidth=1)
        panel.scatter(*pair, s=6, alpha=0.4, color=color_of(label, index, None))
        panel.set(xlabel=f"in the file: {label}", ylabel="learned")
        plain(panel)
    return figure
