"""Whatever is downloaded comes over https."""

import ast
import pathlib

import equistein

SOURCE = pathlib.Path(equistein.__file__).parent


def urls():
    """Return all addresses in the source, but for those in documentation."""
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and id(node) not in docs:
                if isinstance(node.value, str) and "://" in node.value:
                    yield path.relative_to(SOURCE).as_posix(), node.value


def test_every_address_in_the_source_is_of_https_and_of_the_readers():
    found = list(urls())
    assert {path for path, _ in found} == {"data/_qm9.py"}
    assert [url for _, url in found if not url.startswith("https://")] == []
