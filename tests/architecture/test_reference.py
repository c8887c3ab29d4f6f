import ast
import collections
import importlib
import inspect
import pathlib
import re

import pytest
from test_documents import PAGES, run

ROOT = pathlib.Path(__file__).parents[2]
SOURCE = ROOT / "src" / "equistein"
REFERENCE = [page for page in PAGES if page.parent.name == "reference"]
QUICK = {"molecules"}  # the others compile
ENTRY = re.compile(
    r"^::: (\S+)\n(?:    options:\n      members:\n((?:        - \w+\n)+))?",
    re.MULTILINE,
)


def programs(text):
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


def exports(path):
    """The names that a package offers, as its file says `x as x`."""
    return [
        alias.name
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    ]


def public(package):
    """What a package offers by name, without the packages in it."""
    file = SOURCE / "__init__.pyi"
    if package != "equistein":
        path = SOURCE.joinpath(*package.split(".")[1:])
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    module = importlib.import_module(package)
    named = {name: getattr(module, name) for name in exports(file)}
    return {name: each for name, each in named.items() if not inspect.ismodule(each)}


def members(page):
    """The entries of a page in order: a package, a name, and what it names."""
    return [
        (package, name, getattr(importlib.import_module(package), name))
        for package, names in ENTRY.findall(page.read_text())
        for name in re.findall(r"- (\w+)", names)
    ]


LISTED = [entry for page in REFERENCE for entry in members(page)]
PACKAGES = sorted({package for package, _, _ in LISTED} | {"equistein"})
FACES = ["equistein.objectives", "equistein.negatives"]


def test_every_public_name_stands_on_one_page():
    where = collections.Counter((name, id(value)) for _, name, value in LISTED)
    assert [name for (name, _), count in where.items() if count > 1] == []
    packages = {*PACKAGES, *FACES} - {"equistein.bridges.scikit_learn"}
    missing = [
        f"{package}.{name}"
        for package in sorted(packages)
        for name, value in public(package).items()
        if (name, id(value)) not in where
    ]
    assert missing == []


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(p, id=p.stem, marks=[] if p.stem in QUICK else pytest.mark.slow)
        for p in REFERENCE
    ],
)
@pytest.mark.usefixtures("single_precision", "unchecked")
def test_the_blocks_of_a_page_run(page, tmp_path, monkeypatch):
    blocks = "\n".join(programs(page.read_text()))
    if "from ase import" in blocks:
        pytest.importorskip("ase")
    monkeypatch.setenv("EQUISTEIN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    run(blocks)
