"""Learned planar densities, with samples."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from equistein.plotting._style import color, planes

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
