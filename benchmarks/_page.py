"""All that the benchmarks print and draw, on one page."""

import base64
import contextlib
import html
import io
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

FOLDER = pathlib.Path("runs") / "bench"

_STYLE = (
    "body{font:15px sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
    "pre{overflow-x:auto;background:#f4f4f4;padding:1em}img{max-width:100%}"
)
_parts: list[str] = []


@contextlib.contextmanager
def section(name: str) -> Iterator[None]:
    """Keep what is printed, under a heading, and show it too."""
    copy = _Copy()
    _parts.append(f"<h2>{html.escape(name)}</h2>")
    place = len(_parts)
    try:
        with contextlib.redirect_stdout(copy):
            yield
    finally:
        text = html.escape(copy.getvalue().strip())
        _parts.insert(place, f"<pre>{text}</pre>")


def show(name: str, figure: Any) -> None:
    """Keep a figure, here and as a file."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    figure.savefig(FOLDER / f"{name}.png", dpi=150, bbox_inches="tight")
    drawn = base64.b64encode((FOLDER / f"{name}.png").read_bytes()).decode()
    source = f"data:image/png;base64,{drawn}"
    _parts.append(f'<img alt="{html.escape(name)}" src="{source}">')


def write_page() -> pathlib.Path:
    """Write bench.html with all that was kept; return its path."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / "bench.html"
    body = "\n".join(_parts)
    path.write_text(
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>equistein: '
        f"benchmarks</title><style>{_STYLE}</style><h1>Benchmarks</h1>{body}</html>"
    )
    return path


class _Copy(io.StringIO):
    """Keeps text, and prints it where it would have gone."""

    def __init__(self):
        super().__init__()
        self._shown = sys.stdout

    def write(self, text: str) -> int:
        self._shown.write(text)
        return super().write(text)

    def flush(self) -> None:
        self._shown.flush()
