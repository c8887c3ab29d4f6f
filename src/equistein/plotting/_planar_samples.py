"""Samples in the plane over the density they should have."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from equistein.plotting._style import color, EXACT, frameless, grid, label_rows


def planar_samples(
    views: Mapping[str, Sequence[np.ndarray]],
    titles: Sequence[str],
    density: np.ndarray | None,
    reach: float,
) -> Figure:
    """Draw a column a sampler and a row a view of its samples.

    Args:
        views: For each sampler its views: arrays `(n, 2)`, or `(copy, n, 2)` for
            copies in colors of their own.
        titles: What each view is.
        density: The density on a square grid over [-reach, reach)^2, drawn as
            contours at 1, 2 and 3 standard deviations of a Gaussian, or None.
        reach: Half the side of a panel.
    """
    figure, axes = grid(len(titles), len(views), width=2.1, height=2.1)
    for column, samples in zip(axes.T, views.values(), strict=True):
        for panel, points in zip(column, samples, strict=True):
            frameless(panel)
            panel.set(xlim=(-reach, reach), ylim=(-reach, reach))
            if density is not None:
                ticks = np.linspace(-reach, reach, len(density))
                levels = density.max() * np.exp(-0.5 * np.array([3.0, 2.0, 1.0]) ** 2)
                panel.contour(
                    ticks, ticks, density, levels, colors=EXACT, linewidths=0.6,
                    alpha=0.5,
                )  # fmt: skip
            copies = points if points.ndim == 3 else points[None]
            for index, copy in enumerate(copies):
                panel.scatter(*copy.T, s=8, color=color(index), linewidths=0, zorder=3)
    for panel, name in zip(axes[0], views, strict=True):
        panel.set_title(name, fontsize=10)
    label_rows(axes, titles)
    return figure
