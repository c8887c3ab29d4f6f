"""Images in a grid, and how far a classifier's confidence can be trusted."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from equistein.plotting._style import color, EXACT, frameless, grid, label_rows, plain

_LEAST = 20


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
    for panels, images in zip(axes, rows.values(), strict=True):
        for panel in panels:
            frameless(panel)
            panel.spines[:].set_visible(False)
        for panel, image in zip(panels, images, strict=False):
            shown = np.clip((image - limits[0]) / (limits[1] - limits[0]), 0, 1)
            shown = shown[..., 0] if shown.shape[-1] == 1 else shown
            panel.imshow(shown, cmap="gray_r", vmin=0, vmax=1)
    label_rows(axes, list(rows), fontsize=7.0)
    for row in axes:
        row[0].yaxis.label.set(rotation=0, ha="right", va="center")
    return figure


def reliability_diagram(
    models: Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]],
    notes: Sequence[str],
    num_points: int,
) -> Figure:
    """Draw accuracy against confidence, a panel a model.

    Bins of fewer than 20 points are left out, for theirs would be chance.

    Args:
        models: For each model the confidence, the accuracy and the share of the points
            in each bin of confidence.
        notes: What to write into each panel.
        num_points: The number of points.
    """
    figure, axes = grid(1, len(models), width=2.3, height=2.6)
    for index, (panel, (name, bins)) in enumerate(
        zip(axes[0], models.items(), strict=True)
    ):
        confidence, accuracy, share = bins
        some = num_points * share >= _LEAST - 0.5  # shares are rounded
        panel.plot([0, 1], [0, 1], color=EXACT, linewidth=0.8, linestyle="--")
        panel.bar(
            confidence[some], share[some], width=0.05, color=color(index), alpha=0.25,
        )  # fmt: skip
        panel.plot(
            confidence[some], accuracy[some], "o-", ms=3, color=color(index),
            linewidth=1,
        )  # fmt: skip
        panel.text(0.04, 0.93, notes[index], fontsize=8, va="top")
        panel.set(xlim=(0, 1), ylim=(0, 1), xlabel="confidence")
        panel.set_title(name, fontsize=9)
        plain(panel)
    axes[0, 0].set_ylabel("accuracy; bars: share of images")
    return figure
