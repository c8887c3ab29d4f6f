"""Curves, laws of one number, and boxes."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from equistein.plotting._style import color, color_of, EXACT, grid, plain


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
    figure, axes = grid(len(samples), 1, width=6.4, height=1.25)
    values = np.concatenate([np.ravel(v) for v in samples.values()])
    low, high = limits or (np.nanmin(values), np.nanmax(values))
    edges = np.linspace(low, high, bins + 1)
    for index, (panel, (name, these)) in enumerate(
        zip(axes[:, 0], samples.items(), strict=True)
    ):
        inside = np.ravel(these)
        weights = np.full(inside.size, 1 / (inside.size * (edges[1] - edges[0])))
        shade = color_of(name, index, colors)
        panel.hist(inside, edges, weights=weights, color=shade, alpha=0.7)
        if exact is not None:
            panel.plot(*exact, color=EXACT, linewidth=1.2)
            panel.set_ylim(0, 2.2 * exact[1].max())
        missing = np.mean((inside < low) | (inside > high) | ~np.isfinite(inside))
        note = f"{name}" + (f" ({missing:.0%} outside)" if missing > 0.005 else "")
        panel.text(0.99, 0.9, note, transform=panel.transAxes, ha="right", va="top")
        panel.set_xlim(low, high)
        panel.set_yticks([])
        plain(panel)
    axes[-1, 0].set_xlabel(label)
    return figure


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
