import ast
import collections
import importlib
import inspect
import pathlib
import re
import typing

import pytest
from test_documents import PAGES, README, run

import equistein as es

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


def resolved(program):
    """The identities of what a program names, such as `es.kernels.RBF`."""
    tree, bound = ast.parse(program), {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "equistein":
                    bound[alias.asname or alias.name] = es
        elif isinstance(node, ast.ImportFrom) and node.module == "equistein":
            bound |= {alias.asname or alias.name: getattr(es, alias.name, None)
                      or importlib.import_module(f"equistein.{alias.name}")
                      for alias in node.names}  # fmt: skip

    def found(node):
        if isinstance(node, ast.Name):
            return bound.get(node.id)
        owner = found(node.value) if isinstance(node, ast.Attribute) else None
        return None if owner is None else getattr(owner, node.attr, None)

    chains = (found(n) for n in ast.walk(tree) if isinstance(n, ast.Attribute))
    return {id(each) for each in chains if each is not None}


def rank(name, value):
    """0 for what is called, 1 for states and errors, 2 for what is derived from."""
    if name.startswith("Abstract"):
        return 2
    error = inspect.isclass(value) and issubclass(value, BaseException)
    return 1 if error or name.endswith(("State", "Info")) else 0


def wants_example(name, value):
    code = callable(value) and typing.get_origin(value) is None
    return code and rank(name, value) == 0


def used_in(texts):
    """The identities of what the blocks of some pages use."""
    return set().union(*(resolved("\n".join(programs(text))) for text in texts))


def without_example(named, used):
    return [
        name
        for name, value in named.items()
        if wants_example(name, value) and id(value) not in used
    ]


@pytest.fixture(scope="module")
def used():
    return used_in([README, *(page.read_text() for page in PAGES)])


@pytest.mark.parametrize("package", [*PACKAGES, *FACES])
def test_every_public_name_is_used_in_an_example(package, used):
    assert without_example(public(package), used) == []


def test_a_name_without_an_example_is_found(used):
    def made_up():
        pass

    known = {"RBF": es.kernels.RBF, "AbstractKernel": es.kernels.AbstractKernel}
    assert without_example(known | {"made_up": made_up}, used) == ["made_up"]
    assert without_example(known, used_in(["RBF, and no block"])) == ["RBF"]
    other = "```python\nimport equistein as es\nRBF = es.kernels.IMQ\n```"
    assert without_example(known, used_in([other])) == ["RBF"]


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
    if "molecules.ase()" in blocks:
        pytest.importorskip("ase")
    monkeypatch.setenv("EQUISTEIN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    run(blocks)
