"""Samples in space."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure


def spatial_samples(samples: Mapping[str, np.ndarray], reach: float) -> Figure:
    """Draw points in space, a panel a sampler, colored by their radius.

    Args:
        samples: For each sampler an array `(n, 3)`.
        reach: Half the side of the box shown.
    """
    figure = Figure(figsize=(2.8 * len(samples), 3.0), layout="constrained")
    for index, (name, points) in enumerate(samples.items()):
        axes = figure.add_subplot(1, len(samples), index + 1, projection="3d")
        radii = np.linalg.norm(points, axis=1)
        axes.scatter(*points.T, c=radii, s=12, cmap="viridis")
        axes.set_title(name, fontsize=10)
        axes.set(xlim=(-reach, reach), ylim=(-reach, reach), zlim=(-reach, reach))  # type: ignore[call-arg]
        axes.set_box_aspect((1, 1, 1))  # type: ignore[arg-type]
        axes.tick_params(labelsize=6)
    return figure
