"""A picture as it is."""

import numpy as np
from matplotlib.figure import Figure

from equistein.plotting._style import grid


def picture(pixels: np.ndarray) -> Figure:
    """Show a picture as it is.

    Args:
        pixels: An array `(y, x, 3)`.
    """
    height, width = pixels.shape[:2]
    figure, axes = grid(1, 1, width=width / 150, height=height / 150)
    axes[0, 0].axis("off")
    axes[0, 0].imshow(pixels)
    return figure
