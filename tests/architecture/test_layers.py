import ast
import pathlib

import pytest

import equistein

ROOT = pathlib.Path(equistein.__file__).parent
LEVEL = {
    "_types": 0, "_arrays": 0, "_files": 0, "_check_arguments": 0, "_extras": 0,
    "_limits": 0, "_numbers": 0, "_products": 0, "_progress": 0, "_serialization": 0,
    "_sharding": 0,
    "groups": 1, "molecules": 1, "plotting": 1, "data": 2, "runs": 2,
    "features": 2, "kernels": 3, "networks": 3, "samplers": 4, "energies": 4,
    "metrics": 5, "targets": 6, "posteriors": 6, "training": 6, "diffusion": 7,
    "models": 8, "bridges": 9, "cli": 10,
}  # fmt: skip
FILES = sorted(ROOT.rglob("*/*.py"))


def imported_names(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def misplaced(path, names):
    """Return the imports of `path` that do not point down, or not by public name."""
    here = path.relative_to(ROOT).parts[0]
    wrong = []
    for name in names:
        root, there, *rest = [*name.split("."), ""]
        if root != "equistein":
            continue
        if there == here:
            inside = any(part.startswith("_") for part in rest)
            if not inside and not (ROOT / here / rest[0]).is_dir():
                wrong.append(f"{name}: inside a package import the private module")
        elif there not in LEVEL or LEVEL[there] >= LEVEL[here]:
            wrong.append(f"{name}: not a lower level")
        elif LEVEL[there] and any(part.startswith("_") for part in rest):
            wrong.append(f"{name}: not a public name")
    return wrong


def test_imports_point_downwards_and_use_public_names():
    assert len(FILES) > 50
    wrong = {str(path): misplaced(path, imported_names(path)) for path in FILES}
    assert {path: names for path, names in wrong.items() if names} == {}


def test_experiments_use_public_names_only():
    files = sorted((ROOT.parents[1] / "experiments").glob("*.py"))
    assert len(files) > 20
    names = {name for path in files for name in imported_names(path)}
    private = [n for n in names if n.startswith("equistein.") and "._" in n]
    assert private == []


@pytest.mark.parametrize(
    "name",
    [
        "equistein.samplers.SVGD",  # upwards
        "equistein.kernels.Invariant",  # sideways
        "equistein.groups._base.AbstractGroup",  # private
        "equistein.features.Radius",  # its own package by the public name
        "equistein.run",  # from the top
        "equistein",
    ],
)
def test_a_misplaced_import_is_found(name):
    assert misplaced(ROOT / "features" / "_radius.py", [name])


def test_every_package_has_a_level():
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert packages <= set(LEVEL)


def test_init_files_hold_reexports_only():
    packages = set(ROOT.rglob("__init__.py")) - {ROOT / "__init__.py"}
    for path in (*packages, ROOT / "__init__.pyi"):
        for node in ast.parse(path.read_text()).body:
            is_docstring = isinstance(node, ast.Expr)
            assert is_docstring or isinstance(node, ast.ImportFrom), f"{path}: {node}"


def test_no_sampler_mentions_a_group():
    for path in (ROOT / "samplers").rglob("*.py"):
        assert "group" not in path.read_text().lower(), path


def importers(libraries):
    """Return the packages of the library that import one of `libraries`."""
    return {
        path.relative_to(ROOT).parts[0]
        for path in FILES
        if libraries & {name.split(".")[0] for name in imported_names(path)}
    }


def test_only_plotting_imports_matplotlib():
    assert importers({"matplotlib"}) == {"plotting"}


def test_nothing_is_pickled():
    assert importers({"pickle", "dill", "cloudpickle", "joblib", "marshal"}) == set()
