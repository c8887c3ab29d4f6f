"""Densities in the plane, with samples."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from equistein.plotting._style import color, EXACT, planes


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
    figure, axes = planes(views, titles, side=2.1, reach=reach)
    for column, samples in zip(axes, views.values(), strict=True):
        for panel, points in zip(column, samples, strict=True):
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
    return figure


Panel = tuple[np.ndarray, np.ndarray | None, str]


def planar_energies(
    columns: Mapping[str, Sequence[Panel]],
    titles: Sequence[str],
    reach: float,
    shown: float,
) -> Figure:
    """Draw a column a model and a row a density or decision, with samples as stars.

    Args:
        columns: For each model its panels: values on a square grid, samples `(n, 2)` or
            None, and `density` or `boundary`.
        titles: What each row is.
        reach: Half the side of the grid.
        shown: Half the side of a panel.
    """
    figure, axes = planes(columns, titles, side=2.3, reach=shown)
    for column, panels in zip(axes, columns.values(), strict=True):
        for panel, (values, samples, kind) in zip(column, panels, strict=True):
            if kind == "boundary":
                look = {"cmap": "coolwarm", "alpha": 0.6}
            else:  # the square root shows where the density is low as well
                values, look = np.sqrt(values), {"cmap": "Blues"}
            panel.imshow(
                values, origin="lower", extent=(-reach, reach, -reach, reach),
                interpolation="bilinear", **look,
            )  # fmt: skip
            if samples is not None:
                panel.scatter(
                    *samples.T, s=14, marker="*", color=color(1), linewidths=0, zorder=3
                )
            panel.set(xlim=(-shown, shown), ylim=(-shown, shown))
    return figure
