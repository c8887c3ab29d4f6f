"""Samples in the plane over the density they should have."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from equistein.plotting._style import color, EXACT, frameless, grid, label_rows


def planar_samples(
    views: Mapping[str, Sequence[np.ndarray | None]],
    titles: Sequence[str],
    density: Sequence[np.ndarray | None],
    reach: float,
) -> Figure:
    """Draw a row a sampler and a column a view of its samples.

    Args:
        views: For each sampler its views: arrays `(n, 2)`, or `(copy, n, 2)` for
            copies in colors of their own, or None to leave a panel empty.
        titles: The titles of the columns.
        density: For each column the density on a square grid over
            [-reach, reach)^2, drawn as contours, or None.
        reach: Half the side of a panel.
    """
    figure, axes = grid(len(views), len(titles))
    for row, samples in zip(axes, views.values(), strict=True):
        for panel, points, values in zip(row, samples, density, strict=True):
            frameless(panel)
            panel.set_xlim(-reach, reach)
            panel.set_ylim(-reach, reach)
            if points is None:
                panel.set_axis_off()
                continue
            if values is not None:
                ticks = np.linspace(-reach, reach, len(values))
                levels = values.max() * np.exp(-0.5 * np.array([3.0, 2.0, 1.0]) ** 2)
                panel.contour(
                    ticks, ticks, values, levels, colors=EXACT, linewidths=0.6,
                    alpha=0.5,
                )  # fmt: skip
            copies = points if points.ndim == 3 else points[None]
            for index, copy in enumerate(copies):
                panel.scatter(*copy.T, s=9, color=color(index), linewidths=0, zorder=3)
    for panel, title in zip(axes[0], titles, strict=True):
        panel.set_title(title, fontsize=10)
    label_rows(axes, list(views))
    return figure


def spatial_samples(samples: Mapping[str, np.ndarray], reach: float) -> Figure:
    """Draw points in space, a panel a sampler.

    Args:
        samples: For each sampler an array `(n, 3)`.
        reach: Half the side of the box shown.
    """
    figure = Figure(figsize=(3 * len(samples), 3.2), layout="constrained")
    for index, (name, points) in enumerate(samples.items()):
        axes = figure.add_subplot(1, len(samples), index + 1, projection="3d")
        radii = np.linalg.norm(points, axis=1)
        axes.scatter(*points.T, c=radii, s=12, cmap="viridis")
        axes.set_title(name, fontsize=10)
        axes.set(xlim=(-reach, reach), ylim=(-reach, reach), zlim=(-reach, reach))
        axes.set_box_aspect((1, 1, 1))
        axes.tick_params(labelsize=6)
    return figure
