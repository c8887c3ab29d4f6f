"""Figures as files."""

import io
from typing import Literal

import matplotlib
from matplotlib.figure import Figure


def figure_file(figure: Figure, suffix: Literal["png", "svg"], dpi: int = 150) -> bytes:
    """Return the bytes of a figure's file: the same ones for the same figure.

    Args:
        figure: The figure.
        suffix: The kind of file.
        dpi: The dots per inch of a PNG file.
    """
    drawn = io.BytesIO()
    undated = {"Date": None} if suffix == "svg" else None
    with matplotlib.rc_context({"svg.hashsalt": "equistein"}):
        figure.savefig(drawn, format=suffix, dpi=dpi, metadata=undated)
    return drawn.getvalue()
