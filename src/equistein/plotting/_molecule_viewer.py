"""Pictures to turn with the mouse, which need no network."""

import base64
import functools
import gzip
import importlib.util
from collections.abc import Sequence
from typing import Any

import numpy as np

from equistein.plotting._molecules import COLORS, OTHER
from equistein.plotting._page import Page

_COLUMNS = 4
_NARROW = 600  # pixels, below which there are two columns
_FEW = 2
_PAGE = """<style>html, body {{margin: 0; height: 100%}} #figure {{height: 100%}}
@media (prefers-color-scheme: dark) {{body {{background: #fff}}}}</style>
<div id="figure">Loading ...</div><script>
const packed = Uint8Array.from(atob("{script}"), c => c.charCodeAt(0));
const plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
new Response(plain).text().then(code => {{
  const script = document.createElement("script");
  script.textContent = code;
  document.head.append(script);
  document.getElementById("figure").textContent = "";
  const {{data, layout}} = {figure};
  const place = () => {{  // the scenes, row by row
    const names = Object.keys(layout).filter(name => name.startsWith("scene"));
    const columns = Math.min(innerWidth < {narrow} ? {few} : {many}, names.length);
    const rows = Math.ceil(names.length / columns);
    return Object.fromEntries(names.flatMap((name, index) => {{
      const x = index % columns, y = rows - 1 - Math.floor(index / columns);
      return [
        [name + ".domain.x", [x / columns, (x + 1) / columns]],
        [name + ".domain.y", [y / rows, (y + 1) / rows]],
      ];
    }}));
  }};
  const settle = () => Plotly.relayout("figure", place());
  Plotly.newPlot("figure", data, layout, {{responsive: true}}).then(settle);
  matchMedia("(max-width: {narrow}px)").addEventListener("change", settle);
}});
</script>"""


def molecule_viewer(
    symbols: Sequence[str], positions: np.ndarray, orders: np.ndarray
) -> Page:
    """Return molecules in space, to turn with the mouse; a sentence without plotly.

    The script comes with the page, packed to 2 MB, and needs no network.

    Args:
        symbols: The element of each atom.
        positions: Where the atoms are, `(molecule, atom, 3)`, in Angstrom.
        orders: The order of the bond of each pair, `(molecule, atom, atom)`.
    """
    if importlib.util.find_spec("plotly") is None:
        return Page(
            "<p>Molecules to turn with the mouse need plotly: pip install "
            "'equistein[molecules]'.</p>"
        )
    from plotly.subplots import make_subplots

    columns = min(_COLUMNS, len(positions))
    rows = -(-len(positions) // columns)
    figure: Any = make_subplots(
        rows, columns, specs=[[{"type": "scene"}] * columns] * rows,
        horizontal_spacing=0, vertical_spacing=0,
    )  # fmt: skip
    for index, (points, bonds) in enumerate(zip(positions, orders, strict=True)):
        place = {"row": index // columns + 1, "col": index % columns + 1}
        figure.add_scatter3d(**_sticks(points, bonds), **place)
        figure.add_scatter3d(**_balls(symbols, points), **place)
    hidden = {"visible": False}
    figure.update_scenes(
        xaxis=hidden, yaxis=hidden, zaxis=hidden, aspectmode="data", dragmode="orbit"
    )
    figure.update_layout(
        autosize=True, showlegend=False, margin={"l": 0, "r": 0, "t": 0, "b": 0}
    )
    for unused in range(len(positions), rows * columns):
        figure.layout.pop(f"scene{unused + 1}")
    return Page(
        _PAGE.format(
            script=_packed_plotly(),
            figure=figure.to_json(),
            narrow=_NARROW,
            few=_FEW,
            many=_COLUMNS,
        )  # fmt: skip
    )


@functools.cache
def _packed_plotly() -> str:
    """Return plotly's script, packed, as text."""
    from plotly.offline import get_plotlyjs

    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), mtime=0)).decode()


def _balls(symbols: Sequence[str], points: np.ndarray) -> dict[str, Any]:
    sizes = [6 if symbol == "H" else 11 for symbol in symbols]
    colors = [COLORS.get(symbol, OTHER) for symbol in symbols]
    marker = {"size": sizes, "color": colors, "line": {"width": 1, "color": "#666666"}}
    x, y, z = points.T.tolist()
    return {
        "x": x, "y": y, "z": z, "mode": "markers", "marker": marker,
        "text": list(symbols), "hoverinfo": "text",
    }  # fmt: skip


def _sticks(points: np.ndarray, bonds: np.ndarray) -> dict[str, Any]:
    lines: list[list[float | None]] = [[], [], []]
    for i, j in zip(*np.nonzero(np.triu(bonds)), strict=True):
        for axis, line in enumerate(lines):
            line += [float(points[i, axis]), float(points[j, axis]), None]
    x, y, z = lines
    return {
        "x": x, "y": y, "z": z, "mode": "lines", "hoverinfo": "skip",
        "line": {"width": 6, "color": "#777777"},
    }  # fmt: skip
