"""Configurations of a few particles."""

from collections.abc import Mapping

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from equistein.plotting._style import color, frameless, grid, label_rows


def configurations(
    samples: Mapping[str, np.ndarray], reach: float, colors: np.ndarray | None = None
) -> Figure:
    """Draw small configurations, a row a model, with lines between all particles.

    Args:
        samples: For each model an array `(n, particle, dim)`; the first two
            coordinates are drawn. All models show as many.
        reach: Half the side of a panel.
        colors: For each row and configuration the index of a color, `(row, n)`.
    """
    columns = min(len(points) for points in samples.values())
    figure, axes = grid(len(samples), columns, width=1.1, height=1.1)
    for i, (row, points) in enumerate(zip(axes, samples.values(), strict=True)):
        points = points - points.mean(axis=1, keepdims=True)
        for j, (panel, point) in enumerate(zip(row, points[:columns], strict=True)):
            frameless(panel)
            panel.set(xlim=(-reach, reach), ylim=(-reach, reach))
            shade = color(i if colors is None else int(colors[i][j]))
            first, second = np.triu_indices(len(point), k=1)
            lines = np.stack([point[first, :2], point[second, :2]], axis=1)
            look = {"colors": shade, "linewidths": 0.5, "alpha": 0.35}
            panel.add_collection(LineCollection(list(lines), **look))
            panel.scatter(*point[:, :2].T, s=22, color=shade, zorder=3)
    label_rows(axes, list(samples), fontsize=7.0)
    return figure
