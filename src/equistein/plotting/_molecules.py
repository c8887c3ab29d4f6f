"""Molecules in space."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from equistein.plotting._style import frameless, grid

COLORS = {
    "H": "#d0d0d0",
    "C": "#444444",
    "N": "#3050f8",
    "O": "#e03030",
    "F": "#60b040",
}
OTHER = "#b060b0"
_COLUMNS = 8
_REACH = 3.6  # Angstrom, half the side of a panel


def molecules(
    symbols: Sequence[str],
    positions: np.ndarray,
    orders: np.ndarray,
) -> Figure:
    """Draw molecules as balls and sticks, seen along their shortest axis.

    Args:
        symbols: The element of each atom.
        positions: Where the atoms are, `(molecule, atom, 3)`, in Angstrom.
        orders: The order of the bond of each pair, `(molecule, atom, atom)`.
    """
    rows = -(-len(positions) // _COLUMNS)
    figure, axes = grid(rows, _COLUMNS, width=1.25, height=1.25)
    for index, panel in enumerate(axes.ravel()):
        panel.axis("off")
        if index >= len(positions):
            continue
        centered = positions[index] - positions[index].mean(axis=0)
        turned = centered @ np.linalg.svd(centered)[2].T
        for i, j in zip(*np.nonzero(np.triu(orders[index])), strict=True):
            _stick(panel, turned[i], turned[j], int(orders[index][i, j]))
        for at in np.argsort(turned[:, 2]):
            name = str(symbols[int(at)])
            panel.scatter(
                *turned[at, :2],
                s=14 if name == "H" else 38,
                zorder=3 + turned[at, 2],
                color=COLORS.get(name, OTHER),
                edgecolors="black",
                linewidths=0.4,
            )
        reach = max(_REACH, 1.1 * float(np.abs(turned).max()) + 0.4)
        frameless(panel)
        panel.set(xlim=(-reach, reach), ylim=(-reach, reach))
    return figure


def _stick(panel, start: np.ndarray, end: np.ndarray, order: int) -> None:
    """Draw a bond as parallel lines, as many as its order."""
    along = end[:2] - start[:2]
    aside = np.array([-along[1], along[0]]) / max(float(np.hypot(*along)), 1e-9)
    for shift in (np.arange(order) - (order - 1) / 2) * 0.16:
        ends = np.stack([start[:2], end[:2]]) + shift * aside
        depth = 2.5 + float(min(start[2], end[2]))
        panel.plot(*ends.T, color="#555555", linewidth=0.9, zorder=depth)
