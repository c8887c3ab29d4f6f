"""Tutorials are run when the site is built, which has their outputs and notebooks.

A page of docs/tutorials is Markdown with blocks of Python, run from top to bottom in
one namespace, in a folder with the files of the page's name. A block of `py` is shown
and not run. As in a notebook, a block shows what it prints and the value of its last
expression. A matplotlib figure becomes a picture; the comment `# Figure: ...` of the
block describes it. With the environment variable NO_TUTORIALS nothing is run, and the
pages show no outputs.
"""

import ast
import contextlib
import dataclasses
import io
import json
import logging
import os
import pathlib
import re
import shutil
import tempfile
import time

_BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
_FIGURE = re.compile(r"^# Figure: (.*)$", re.MULTILINE)
_DPI = 110
_LOG = logging.getLogger("mkdocs.tutorials")


@dataclasses.dataclass
class Output:
    """What a block printed, and its figure as a PNG."""

    text: str
    figure: bytes | None
    caption: str


def split(page: str) -> list[tuple[str, str]]:
    """Return the parts of a page: pairs of `markdown` or `code`, and the text."""
    parts = _BLOCK.split(page)
    kinds = ["markdown", "code"] * len(parts)
    return list(zip(kinds, parts, strict=False))


def run_block(code: str, namespace: dict) -> Output:
    """Run a block as a notebook does: the value of its last expression is shown."""
    tree, value, printed = ast.parse(code), None, io.StringIO()
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "tutorial", "exec"), namespace)
        if last is not None:
            value = eval(
                compile(ast.Expression(last.value), "tutorial", "eval"), namespace
            )
    caption, picture = _FIGURE.search(code), None
    if hasattr(value, "savefig"):
        file = io.BytesIO()
        value.savefig(file, format="png", dpi=_DPI)
        picture, value = file.getvalue(), None
    text = printed.getvalue() + ("" if value is None else f"{value!r}\n")
    return Output(text, picture, caption[1] if caption else "")


def run(page: str, path: pathlib.Path | None = None) -> list[Output]:
    """Run the blocks of a page and return what they show; its path is for its files."""
    namespace: dict = {"__name__": "tutorial"}
    files = path.absolute().parent.glob(f"{path.stem}.*") if path else ()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for file in files:
            shutil.copy(file, folder)
        codes = [text for kind, text in split(page) if kind == "code"]
        return [run_block(code, namespace) for code in codes]


def notebook(page: str) -> str:
    """Return a page as a Jupyter notebook without outputs."""
    cells = []
    for index, (kind, text) in enumerate(split(page)):
        cell = {"cell_type": kind, "id": f"cell-{index}", "metadata": {}}
        cell["source"] = text.strip()
        if kind == "code":
            cell |= {"execution_count": None, "outputs": []}
        if text.strip():
            cells.append(cell)
    python = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {"cells": cells, "metadata": {"kernelspec": python}}
    return json.dumps(whole | {"nbformat": 4, "nbformat_minor": 5}, indent=1)


def shown(page: str, name: str, outputs: list[Output]) -> str:
    """Return the Markdown of a page with its outputs and a link to its notebook."""
    remaining, parts = iter(outputs), []
    for kind, text in split(page):
        if kind == "markdown":
            parts.append(text)
            continue
        parts.append(f"```python\n{text}```\n")
        output = next(remaining, Output("", None, ""))
        if output.text:
            parts.append(f"\n```text\n{output.text}```\n")
        if output.figure:
            number = outputs.index(output)
            parts.append(f"\n![{output.caption}]({name}-{number}.png)\n")
    link = f"\n[Download this page as a notebook]({name}.ipynb){{ download }}\n"
    title, rest = "".join(parts).split("\n", 1)
    return f"{title}\n{link}{rest}"


_PAGES: dict[str, str] = {}


def on_files(files, config, **_):
    """Run each tutorial, and add its figures and its notebook to the site."""
    from mkdocs.structure.files import File

    _PAGES.clear()
    for file in list(files):
        path = pathlib.PurePosixPath(file.src_uri)
        if path.parent.name != "tutorials" or path.suffix != ".md":
            continue
        page, began = file.content_string, time.perf_counter()
        source = pathlib.Path(file.abs_src_path)
        outputs = [] if "NO_TUTORIALS" in os.environ else run(page, source)
        _LOG.info("Ran %s in %.0f s", path, time.perf_counter() - began)
        _PAGES[file.src_uri] = shown(page, path.stem, outputs)
        made = {f"{path.stem}.ipynb": notebook(page)}
        for number, output in enumerate(outputs):
            if output.figure:
                made[f"{path.stem}-{number}.png"] = output.figure
        for name, content in made.items():
            uri = str(path.with_name(name))
            files.append(File.generated(config, uri, content=content))
    return files


def on_page_markdown(markdown, page, **_):
    """Show a tutorial with its outputs."""
    return _PAGES.get(page.file.src_uri, markdown)
