"""The look of all figures."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

EXACT = "#222222"
PALETTE = ("#2f6fbb", "#d9662c", "#3a9d5d", "#8c5fb0", "#b8942f", "#c14a6b", "#4aa3b5")


def grid(
    rows: int, columns: int, *, width: float = 2.6, height: float = 2.6
) -> tuple[Figure, np.ndarray]:
    """Return a figure and its axes, shape `(rows, columns)`."""
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def color(index: int) -> str:
    """Return the color of the index-th series."""
    return PALETTE[index % len(PALETTE)]


def color_of(name: str, index: int, colors: Mapping[str, int] | None) -> str:
    """Return the color of a series: the one of its name, or of its place."""
    return color((colors or {}).get(name, index))


def frameless(axes: Axes) -> None:
    """Leave only the data: equal scales and no ticks."""
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])


def plain(axes: Axes) -> None:
    """Drop the frame's upper and right side."""
    axes.spines[["top", "right"]].set_visible(False)


def label_rows(axes: np.ndarray, labels: Sequence[str], fontsize: float = 10.0) -> None:
    """Write a label left of each row."""
    for row, label in zip(axes, labels, strict=True):
        row[0].set_ylabel(label, fontsize=fontsize)
