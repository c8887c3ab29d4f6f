"""Histograms of one number."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from equistein.plotting._style import color_of, EXACT, grid, plain


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
    for index, (panel, name) in enumerate(zip(axes[:, 0], samples, strict=True)):
        inside = np.ravel(samples[name])
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
