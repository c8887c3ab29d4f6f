"""The look of all figures."""

import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

EXACT = "#222222"
# Those of Okabe and Ito, moved so that each is seen on white and any two differ for
# people without red or green cones.
PALETTE = ("#014a94", "#ae3718", "#00a561", "#c9669d", "#dd7c01", "#458df3")
LINES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "D")
_ALIKE = 4  # series in a row distinguished by their color alone
_FEW_NAMES = 3
_ROW = 16  # letters of a line of a row's label

Colors = Mapping[str, int] | None
"""The number of each name's color; by default its place."""


def grid(
    rows: int, columns: int, *, width: float = 2.6, height: float = 2.6
) -> tuple[Figure, np.ndarray]:
    """Return a figure and its axes, shape `(rows, columns)`."""
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def chart(label: str, *, width: float = 7.6, height: float) -> tuple[Figure, Axes]:
    """Return a figure of one panel, and the panel, with its vertical axis labeled."""
    figure, axes = grid(1, 1, width=width, height=height)
    axes[0, 0].set_ylabel(label)
    plain(axes[0, 0])
    return figure, axes[0, 0]


def color(index: int) -> str:
    """Return the color of the index-th series; what is exact has the number -1."""
    return EXACT if index < 0 else PALETTE[index % len(PALETTE)]


def color_of(name: str, index: int, colors: Colors) -> str:
    """Return the color of a series: the one of its name, or of its place."""
    return color((colors or {}).get(name, index))


def line_of(name: str, index: int, colors: Colors) -> tuple[str, str]:
    """Return the line style and the marker of a series, others for each four series."""
    kind = max((colors or {}).get(name, index), 0) // _ALIKE
    return LINES[kind % len(LINES)], MARKERS[kind % len(MARKERS)]


def frameless(axes: Axes, reach: float | None = None) -> None:
    """Leave only the data: equal scales and no ticks, up to a distance from 0."""
    axes.set(aspect="equal", xticks=[], yticks=[])
    if reach is not None:
        axes.set(xlim=(-reach, reach), ylim=(-reach, reach))


def plain(axes: Axes) -> None:
    """Drop the frame's upper and right side."""
    axes.spines[["top", "right"]].set_visible(False)


def bare(axes: Axes, label: str) -> None:
    """Label the horizontal axis of a histogram, whose heights need no numbers."""
    axes.set_xlabel(label)
    axes.set_yticks([])
    plain(axes)


def legend(
    axes: Axes, exact: tuple[float, str] | None = None, *, upright: bool = False
) -> None:
    """Draw a line at a value with its name, if there is one, and name all series."""
    if exact is not None:
        line = axes.axvline if upright else axes.axhline
        line(exact[0], color=EXACT, linewidth=1, linestyle="--", label=exact[1])
    num = len(axes.get_legend_handles_labels()[0])
    # Many names stand beside the panel, where they hide nothing.
    beside = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
    if num:
        axes.legend(fontsize=8, frameon=False, **(beside if num > _FEW_NAMES else {}))


def label_rows(axes: np.ndarray, labels: Sequence[str], fontsize: float = 10.0) -> None:
    """Write a label left of each row, in lines that are no longer than it is high."""
    for row, label in zip(axes, labels, strict=True):
        row[0].set_ylabel(textwrap.fill(label, _ROW), fontsize=fontsize)
