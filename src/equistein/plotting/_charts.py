"""Charts of numbers: curves, errors, boxes and histograms."""

import functools
from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from equistein.plotting._style import (
    bare,
    chart,
    color,
    color_of,
    Colors,
    EXACT,
    grid,
    legend,
    line_of,
    plain,
)

_COLUMNS = 4
_FEW_BINS, _MANY_BINS = 30, 50
_NOTED = 0.005  # fraction of values outside, from which on it is written


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

    A series has the steps `(record,)` and the values `(seed, record)`. `exact` is a
    value to draw as a line, such as that of exact samples, and what it is. An end of
    the `limits` that is None is that of the values.
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

    A series has places, values and errors, of which those not finite are not drawn.
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

    `exact` is a value to draw as a line, and what it is.
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
    """Draw learned values over exact ones, a panel for each label, with the diagonal.

    Each panel has the exact and the learned values.
    """
    figure, axes = grid(1, len(panels), width=3.6, height=3.4)
    for index, (label, pair) in enumerate(panels.items()):
        panel, ends = axes[0, index], [np.min(pair), np.max(pair)]
        panel.plot(ends, ends, color=EXACT, linewidth=1)
        panel.scatter(*pair, s=6, alpha=0.4, color=color_of(label, index, None))
        panel.set(xlabel=f"in the file: {label}", ylabel="learned")
        plain(panel)
    return figure


def histograms(
    samples: Mapping[str, np.ndarray],
    exact: tuple[np.ndarray, np.ndarray] | None,
    label: str,
    *,
    bins: int = 60,
    limits: tuple[float, float] | None = None,
    colors: Colors = None,
) -> Figure:
    """Draw the histogram of one number, a panel a sampler, with the exact density.

    That is `(values, density)`. By default the limits are those of all samples.
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
        note = f"{name} ({missing:.0%} outside)" if missing > _NOTED else name
        panel.set_title(note, loc="right", fontsize=9, pad=2)
        panel.set_xlim(low, high)
        bare(panel, "")
    axes[-1, 0].set_xlabel(label)
    return figure


def against_exact(
    panels: Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]], *, bins: int = 60
) -> Figure:
    """Draw each quantity of samples over that of a reference and of the floor.

    A panel has the values of the samples, of the reference, and of exact samples as
    many as the samples. Bins leave out a thousandth of the reference at either end.
    """
    figure, axes = grid(1, len(panels), width=4.6, height=3.0)
    for panel, (label, series) in zip(axes[0], panels.items(), strict=True):
        samples, reference, floor = map(np.ravel, series)
        edges = _edges(reference, 0.001, 0.1, bins)
        heights = [
            np.histogram(values, edges)[0] / values.size / np.diff(edges)
            for values in (samples, floor, reference)
        ]
        stairs = functools.partial(panel.stairs, edges=edges)
        stairs(heights[0], color=color(0), fill=True, alpha=0.5, label="samples")
        stairs(heights[1], color=color(1), linewidth=0.8, label="as many exact samples")
        stairs(heights[2], color=EXACT, linewidth=1.2, label="reference")
        panel.set_ylim(0, 1.6 * np.max(heights[1:]))
        outside = np.mean((samples < edges[0]) | (samples > edges[-1]))
        if outside > _NOTED:
            panel.set_title(f"{outside:.0%} of the samples are outside", fontsize=9)
        bare(panel, label)
    axes[0, 0].legend(frameon=False, fontsize=8)
    return figure


def side_by_side(panels: Mapping[str, Mapping[str, np.ndarray]]) -> Figure:
    """Draw each quantity in a panel, of `data`, the first, and of samples.

    Whole numbers have a bin each; others are shown up to the 2 % at either end.
    """
    columns = min(_COLUMNS, len(panels))
    figure, axes = grid(-(-len(panels) // columns), columns, width=2.6, height=2.0)
    for panel in axes.ravel()[len(panels) :]:
        panel.axis("off")
    for panel, (label, series) in zip(axes.ravel(), panels.items(), strict=False):
        values = np.concatenate(list(series.values()))
        edges = _edges(values, 0.02, 0.05, _FEW_BINS)
        if np.issubdtype(values.dtype, np.integer):
            edges = np.arange(values.min(), values.max() + 2) - 0.5
        for index, (name, each) in enumerate(series.items()):
            fractions = np.histogram(each, edges)[0] / max(1, len(each))
            look = {"fill": True, "alpha": 0.5} if index else {"linewidth": 1.2}
            panel.stairs(fractions, edges, color=color(index - 1), label=name, **look)
        bare(panel, label)
    axes[0, 0].legend(frameon=False, fontsize=8)
    return figure


def marginals(
    relabelled: Mapping[str, np.ndarray], invariant: Mapping[str, np.ndarray]
) -> Figure:
    """Draw marginals of relabelled draws, and beside them those no label enters.

    Relabelled draws are `(draw, label)`. What does not depend on labels, `(draw,
    number)`, is order statistics of these in the same order, then others.
    """
    rest = list(invariant.items())
    shown = []
    for name, draws in relabelled.items():
        shown += [(f"{name}, relabelled", draws), rest.pop(0)]
    shown += rest
    figure, axes = grid(-(-len(shown) // 2), 2, width=3.6, height=2.0)
    for panel, (name, draws) in zip(axes.ravel(), shown, strict=False):
        bins = np.histogram_bin_edges(draws, _MANY_BINS)
        for i, column in enumerate(draws.T):
            panel.hist(column, bins.tolist(), density=True, color=color(i), alpha=0.6)
        bare(panel, name)
    for panel in axes.ravel()[len(shown) :]:
        panel.set_axis_off()
    return figure


def _edges(values: np.ndarray, tail: float, margin: float, bins: int) -> np.ndarray:
    """Return edges over all but a tail of the values at either end, and a margin."""
    low, high = np.quantile(values, (tail, 1 - tail))
    more = margin * (high - low) + 1e-6
    return np.linspace(low - more, high + more, bins + 1)
