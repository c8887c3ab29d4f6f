"""Each tutorial runs from top to bottom, shows a figure, and checks its result."""

import importlib.util
import json
import pathlib
import re
import sys

import numpy as np
import pytest

DOCS = pathlib.Path(__file__).parents[2] / "docs"
TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))
COMPUTE = ("cluster", "trajectory")  # which compile less than they compute
NEEDS = {"mixture": "numpyro", "molecules": "rdkit", "images": "sklearn"}


def hook(name):
    """A hook of the site, such as that which runs them."""
    path = DOCS / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"build{name}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


BUILDER = hook("_tutorials")


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(
            path, id=path.stem, marks=[pytest.mark.heavy] * (path.stem in COMPUTE)
        )
        for path in TUTORIALS
    ],
)
@pytest.mark.usefixtures("single_precision", "unchecked")
@pytest.mark.filterwarnings("ignore:R-hat of")  # of the component too many, rightly
def test_a_tutorial_runs(path):
    if path.stem in NEEDS:
        pytest.importorskip(NEEDS[path.stem], reason=f"needs {NEEDS[path.stem]}")
    outputs = BUILDER.run(path.read_text(), path)
    figures = [output for output in outputs if output.figure]
    assert figures
    assert all(output.caption for output in figures)


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_asks_checks_and_says_what_to_do(path):
    page = path.read_text()
    assert "**Question.**" in page
    assert "\nassert " in page
    assert "\n## When " in page
    assert f"tutorials/{path.name}" in (DOCS.parent / "mkdocs.yml").read_text()


@pytest.mark.slow
@pytest.mark.usefixtures("single_precision", "unchecked")
@pytest.mark.filterwarnings("ignore")  # a run that is far too short
def test_what_a_page_does_not_run_writes_the_file_that_it_reads(tmp_path, monkeypatch):
    pytest.importorskip("openmm", reason="needs OpenMM")
    path = DOCS / "tutorials" / "alanine.md"
    blocks = re.findall(r"```py\n(.*?)```", path.read_text(), re.DOTALL)
    brief = "\n".join(blocks).replace("20, 400, 1_000", "4, 4, 3")
    (tmp_path / "alanine.pdb").write_bytes(path.with_suffix(".pdb").read_bytes())
    monkeypatch.chdir(tmp_path)
    exec(brief, {})
    with np.load("alanine.npz") as new, np.load(path.with_suffix(".npz")) as saved:
        assert new.files == saved.files
        assert new["torsions"].shape == (3, 4, 2)


PAGE = """# A page

Words.

```python
value = 2
print("two", value)
value + 1
```

More words.

```python
from matplotlib.figure import Figure
# Figure: an empty figure
Figure()
```
"""


def test_a_page_is_shown_with_its_outputs():
    outputs = BUILDER.run(PAGE)
    assert outputs[0].text == "two 2\n3\n"
    shown = BUILDER.shown(PAGE, "page", outputs)
    assert "```text\ntwo 2\n3\n```" in shown
    assert "![an empty figure](page-1.png)" in shown
    assert shown.startswith("# A page\n\n[Download this page")
    assert outputs[1].figure.startswith(b"\x89PNG")


def test_a_page_is_a_notebook():
    cells = json.loads(BUILDER.notebook(PAGE))["cells"]
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code"] * 2


def test_a_page_that_fails_is_not_built():
    with pytest.raises(AssertionError):
        BUILDER.run("# A page\n\n```python\nassert 1 > 2\n```\n")


def test_a_wide_formula_scrolls_and_not_its_page():
    pytest.importorskip("latex2mathml", reason="needs the extra docs")
    shown = hook("_math").on_page_content(
        r'<div class="arithmatex">\[E = 1\]</div>'
        r'<span class="arithmatex">\(x^2\)</span>'
    )
    block, inline = shown.split("</div>")
    assert block.startswith('<div style="overflow: auto hidden"><math')
    assert inline.startswith("<math")
