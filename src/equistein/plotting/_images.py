"""Images in rows, and figures as files."""

import io
from collections.abc import Mapping
from typing import Literal

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from equistein.plotting._style import frameless, grid, label_rows


def image_rows(
    rows: Mapping[str, np.ndarray], *, limits: tuple[float, float] = (0.0, 1.0)
) -> Figure:
    """Draw a row of images for each name, dark on white.

    Args:
        rows: For each name its images, `(n, side, side, channel)` with 1 channel or 3.
        limits: The values drawn white and black; those beyond are cut off.
    """
    columns = max(map(len, rows.values()))
    figure, axes = grid(len(rows), columns, width=0.62, height=0.62)
    for panel in axes.ravel():
        frameless(panel)
        panel.spines[:].set_visible(False)
    low, high = limits
    for panels, images in zip(axes, rows.values(), strict=True):
        for panel, image in zip(panels, images, strict=False):
            shown = np.clip((image - low) / (high - low), 0, 1)
            panel.imshow(shown, cmap="gray_r", vmin=0, vmax=1)
    label_rows(axes, list(rows), fontsize=7.0)
    for row in axes:
        row[0].yaxis.label.set(rotation=0, ha="right", va="center")
    return figure


def figure_file(figure: Figure, suffix: Literal["png", "svg"]) -> bytes:
    """Return the bytes of a figure's file: the same ones for the same figure."""
    drawn = io.BytesIO()
    undated = {"Date": None} if suffix == "svg" else None
    with matplotlib.rc_context({"svg.hashsalt": "equistein"}):
        figure.savefig(drawn, format=suffix, dpi=150, metadata=undated)
    return drawn.getvalue()
