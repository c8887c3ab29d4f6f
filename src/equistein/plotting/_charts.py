"""Charts of numbers: curves, errors, histograms, boxes and bars."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from equistein.plotting._style import (
    chart,
    color_of,
    EXACT,
    grid,
    legend,
    line_of,
    marker_of,
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
    colors: Mapping[str, int] | None = None,
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
    figure, panel = chart(label, width=7.6, height=3.8)
    for index, (name, (steps, values)) in enumerate(series.items()):
        shade = color_of(name, index, colors)
        line = line_of(name, index, colors)
        # A line of one point shows nothing.
        mark = marker_of(name, index, colors) if len(steps) == 1 else None
        mean = values.mean(axis=0)
        panel.plot(
            steps, mean, color=shade, linestyle=line, marker=mark,
            label=name if _is_seen(mean, limits) else f"{name} (off the axis)",
        )  # fmt: skip
        low, high = values.min(axis=0), values.max(axis=0)
        panel.fill_between(steps, low, high, color=shade, alpha=0.2, linewidth=0)
    if log_x:
        panel.set_xscale("log")
    if log_y:
        panel.set_yscale("log")
    panel.set(xlabel=x_label, ylim=limits)
    legend(panel, exact)
    return figure


def error_bars(
    series: Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]],
    label: str,
    *,
    x_label: str,
    marks: Mapping[str, float] | None = None,
    colors: Mapping[str, int] | None = None,
) -> Figure:
    """Draw values with their standard errors over a quantity.

    Args:
        series: For each name where the values are, the values, and their errors; an
            error that is not finite is not drawn.
        label: What the values are.
        x_label: What the quantity is.
        marks: Places to mark by a line, by name.
        colors: The number of each name's color; by default its place.
    """
    figure, panel = chart(label, width=7.6, height=3.8)
    for index, (name, (places, values, errors)) in enumerate(series.items()):
        shade, known = color_of(name, index, colors), np.isfinite(errors)
        mark = marker_of(name, index, colors)
        panel.errorbar(
            places, values, np.where(known, errors, 0), color=shade, label=name,
            linestyle=line_of(name, index, colors), marker=mark, markersize=3,
            linewidth=1.2, capsize=2,
        )  # fmt: skip
    for name, place in (marks or {}).items():
        panel.axvline(place, color=EXACT, linewidth=1, linestyle="--", label=name)
    panel.set(xlabel=x_label)
    if all(np.issubdtype(np.asarray(places).dtype, np.integer)
           for places, *_ in series.values()):  # fmt: skip
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    legend(panel)
    return figure


def _is_seen(
    values: np.ndarray, limits: tuple[float | None, float | None] | None
) -> bool:
    """Return whether any value is within the limits."""
    low, high = limits or (None, None)
    inside = np.ones(np.shape(values), bool)
    if low is not None:
        inside &= values >= low
    if high is not None:
        inside &= values <= high
    return bool(inside.any())


def histograms(
    samples: Mapping[str, np.ndarray],
    exact: tuple[np.ndarray, np.ndarray] | None,
    label: str,
    *,
    bins: int = 60,
    limits: tuple[float, float] | None = None,
    colors: Mapping[str, int] | None = None,
) -> Figure:
    """Draw the histogram of one number, a panel a sampler, with the exact density.

    Args:
        samples: For each sampler the values.
        exact: The exact density as `(values, density)`, or None.
        label: What the number is, with its unit.
        bins: The number of bins.
        limits: The range shown; by default that of all samples.
        colors: The number of each sampler's color; by default its place.
    """
    figure, axes = grid(len(samples), 1, width=6.4, height=1.4)
    values = np.concatenate([np.ravel(v) for v in samples.values()])
    low, high = limits or (np.nanmin(values), np.nanmax(values))
    edges = np.linspace(low, high, bins + 1)
    for index, (panel, name) in enumerate(zip(axes[:, 0], samples, strict=True)):
        inside = np.ravel(samples[name])
        weights = np.full(inside.size, 1 / (inside.size * (edges[1] - edges[0])))
        shade = color_of(name, index, colors)
        panel.hist(inside, edges, weights=weights, color=shade, alpha=0.7)
        if exact is not None:
            panel.plot(*exact, color=EXACT, linewidth=1.2)
        missing = np.mean((inside < low) | (inside > high) | ~np.isfinite(inside))
        note = f"{name}" + (f" ({missing:.0%} outside)" if missing > 0.005 else "")
        panel.set_title(note, loc="right", fontsize=9, pad=2)
        panel.set_xlim(low, high)
        panel.set_yticks([])
        plain(panel)
    axes[-1, 0].set_xlabel(label)
    return figure


def boxes(
    groups: Mapping[str, np.ndarray],
    label: str,
    *,
    exact: tuple[float, str] | None = None,
    colors: Mapping[str, int] | None = None,
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
    if log:
        panel.set_xscale("log")
    values = [np.ravel(values) for values in groups.values()]
    panel.boxplot(
        values, widths=0.5, showfliers=False, medianprops={"color": EXACT},
        orientation="horizontal",
    )  # fmt: skip
    panel.set_yticks(range(1, len(groups) + 1), list(groups), fontsize=8)
    panel.invert_yaxis()
    panel.set_xlabel(label)
    for index, (name, these) in enumerate(zip(groups, values, strict=True)):
        apart = 0.12 if these.size > 1 else 0.0
        places = index + 1 + np.linspace(-apart, apart, these.size)
        shade = color_of(name, index, colors)
        panel.scatter(these, places, s=10, zorder=3, color=shade)
    if exact is not None:
        value, name = exact
        panel.axvline(value, color=EXACT, linewidth=1, linestyle="--", label=name)
    legend(panel)
    return figure


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
