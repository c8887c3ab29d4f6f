"""Learned planar densities, with samples."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from equistein.plotting._style import color, frameless, grid, label_rows

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
    figure, axes = grid(len(titles), len(columns), width=2.3, height=2.3)
    for column, panels in zip(axes.T, columns.values(), strict=True):
        for panel, (values, samples, kind) in zip(column, panels, strict=True):
            frameless(panel)
            extent = (-reach, reach, -reach, reach)
            boundary = kind == "boundary"
            # The square root shows where the density is low as well.
            panel.imshow(
                values if boundary else np.sqrt(values), origin="lower", extent=extent,
                cmap="coolwarm" if boundary else "Blues", interpolation="bilinear",
                alpha=0.6 if boundary else 1.0,
            )  # fmt: skip
            if samples is not None:
                panel.scatter(
                    *samples.T, s=14, marker="*", color=color(1), linewidths=0, zorder=3
                )
            panel.set(xlim=(-shown, shown), ylim=(-shown, shown))
    for panel, name in zip(axes[0], columns, strict=True):
        panel.set_title(name, fontsize=9)
    label_rows(axes, titles)
    return figure
