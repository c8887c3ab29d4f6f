"""Molecules in space: as a figure, and to rotate with the mouse."""

import dataclasses
import importlib.util
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from equistein.plotting._style import frameless, grid

CPK = {"H": "#d0d0d0", "C": "#444444", "N": "#3050f8", "O": "#e03030", "F": "#60b040"}
OTHER = "#b060b0"
_COLUMNS, _VIEWER_COLUMNS = 8, 4
_REACH = 3.6  # Angstrom, half the side of a panel
_PAGE_STYLE = "<style>html, body {margin: 0; height: 100%; background: #fff}</style>"


@dataclasses.dataclass(frozen=True)
class Page:
    """A part of a page in HTML, which stands in a report as a figure does."""

    html: str


def molecules(
    symbols: Sequence[str], positions: np.ndarray, orders: np.ndarray
) -> Figure:
    """Draw molecules as balls and sticks, seen along their shortest axis.

    Args:
        symbols: The element of each atom.
        positions: Where the atoms are, `(molecule, atom, 3)`, in Angstrom.
        orders: The order of the bond of each pair, `(molecule, atom, atom)`.
    """
    rows = -(-len(positions) // _COLUMNS)
    figure, axes = grid(rows, _COLUMNS, width=1.25, height=1.25)
    for panel in axes.ravel():
        panel.axis("off")
    sizes = np.array([14 if symbol == "H" else 38 for symbol in symbols])
    colors = np.array([CPK.get(str(symbol), OTHER) for symbol in symbols])
    for panel, points, bonds in zip(axes.ravel(), positions, orders, strict=False):
        centered = points - points.mean(axis=0)
        rotated = centered @ np.linalg.svd(centered)[2].T
        for i, j in zip(*np.nonzero(np.triu(bonds)), strict=True):
            _draw_bond(panel, rotated[i], rotated[j], int(bonds[i, j]))
        for atom in np.argsort(rotated[:, 2]):
            panel.scatter(
                *rotated[atom, :2], s=sizes[atom], zorder=3 + rotated[atom, 2],
                color=colors[atom], edgecolors="black", linewidths=0.4,
            )  # fmt: skip
        frameless(panel, max(_REACH, 1.1 * float(np.abs(rotated).max()) + 0.4))
    return figure


def _draw_bond(panel: Axes, start: np.ndarray, end: np.ndarray, order: int) -> None:
    """Draw a bond as parallel lines, as many as its order."""
    along = end[:2] - start[:2]
    aside = np.array([-along[1], along[0]]) / max(float(np.hypot(*along)), 1e-9)
    for shift in (np.arange(order) - (order - 1) / 2) * 0.16:
        ends = np.stack([start[:2], end[:2]]) + shift * aside
        depth = 2.5 + float(min(start[2], end[2]))
        panel.plot(*ends.T, color="#555555", linewidth=0.9, zorder=depth)


def molecule_viewer(
    symbols: Sequence[str], positions: np.ndarray, orders: np.ndarray
) -> Page:
    """Return molecules in space, to rotate with the mouse; a sentence without plotly.

    The script of plotly comes with the page, which needs no network. The arguments are
    those of `molecules`.
    """
    if importlib.util.find_spec("plotly") is None:
        return Page(
            "<p>Molecules to rotate with the mouse need plotly: pip install "
            "'equistein[molecules]'.</p>"
        )
    from plotly.subplots import make_subplots

    columns = min(_VIEWER_COLUMNS, len(positions))
    rows = -(-len(positions) // columns)
    figure: Any = make_subplots(
        rows, columns, specs=[[{"type": "scene"}] * columns] * rows,
        horizontal_spacing=0, vertical_spacing=0,
    )  # fmt: skip
    balls = {
        "size": [6 if symbol == "H" else 11 for symbol in symbols],
        "color": [CPK.get(symbol, OTHER) for symbol in symbols],
        "line": {"width": 1, "color": "#666666"},
    }
    for index, (points, bonds) in enumerate(zip(positions, orders, strict=True)):
        place = {"row": index // columns + 1, "col": index % columns + 1}
        ends = points[np.argwhere(np.triu(bonds))]  # (bond, end, 3); NaN parts lines
        gaps = np.full_like(ends[:, :1], np.nan, dtype=float)
        x, y, z = np.concatenate([ends, gaps], axis=1).reshape(-1, 3).T.tolist()
        figure.add_scatter3d(
            x=x, y=y, z=z, mode="lines", hoverinfo="skip",
            line={"width": 6, "color": "#777777"}, **place,
        )  # fmt: skip
        x, y, z = points.T.tolist()
        figure.add_scatter3d(
            x=x, y=y, z=z, mode="markers", marker=balls, text=list(symbols),
            hoverinfo="text", **place,
        )  # fmt: skip
    hidden = {"visible": False}
    figure.update_scenes(
        xaxis=hidden, yaxis=hidden, zaxis=hidden, aspectmode="data", dragmode="orbit"
    )
    figure.update_layout(
        autosize=True, showlegend=False, margin={"l": 0, "r": 0, "t": 0, "b": 0}
    )
    for unused in range(len(positions), rows * columns):
        figure.layout.pop(f"scene{unused + 1}")
    page = figure.to_html(
        full_html=False, include_plotlyjs=True, div_id="figure",
        default_height="100%", config={"responsive": True},
    )  # fmt: skip
    return Page(_PAGE_STYLE + page)
