"""Histograms of samples against exact ones."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from equistein.plotting._style import color, EXACT, grid, plain


def against_exact(
    panels: Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]], *, bins: int = 60
) -> Figure:
    """Draw each quantity of samples over that of a reference and of the floor.

    Args:
        panels: By label, with its unit, the values of the samples, of the reference,
            and of exact samples as many as the samples.
        bins: The number of bins, over all but a thousandth of the reference at either
            end.
    """
    figure, axes = grid(1, len(panels), width=4.6, height=3.0)
    for panel, (label, (samples, reference, floor)) in zip(
        axes[0], panels.items(), strict=True
    ):
        low, high = np.quantile(reference, (0.001, 0.999))
        margin = 0.1 * (high - low)
        edges = np.linspace(low - margin, high + margin, bins + 1)
        shares = [
            np.histogram(values, edges)[0] / (values.size * (edges[1] - edges[0]))
            for values in map(np.ravel, (samples, floor, reference))
        ]
        panel.stairs(shares[0], edges, fill=True, color=color(0), alpha=0.5,
                     label="samples")  # fmt: skip
        panel.stairs(shares[1], edges, color=color(1), linewidth=0.8,
                     label="as many exact samples")  # fmt: skip
        panel.stairs(shares[2], edges, color=EXACT, linewidth=1.2, label="reference")
        outside = np.mean((samples < edges[0]) | (samples > edges[-1]))
        if outside > 0.005:
            panel.set_title(f"{outside:.0%} of the samples are outside", fontsize=9)
        panel.set_xlabel(label)
        panel.set_yticks([])
        panel.set_ylim(0, 1.6 * max(shares[1].max(), shares[2].max()))
        plain(panel)
    axes[0, 0].legend(frameon=False, fontsize=8)
    return figure
