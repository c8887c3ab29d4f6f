"""What varies is an object with an interface: nothing asks for its type."""

import ast
import pathlib

import pytest
from test_classes import modules_of_the_library

import equistein
from equistein.energies import AbstractEnergy
from equistein.groups import AbstractGroup
from equistein.kernels import AbstractKernel
from equistein.networks import AbstractNetwork

ROOT = pathlib.Path(equistein.__file__).parent
KINDS = (AbstractEnergy, AbstractNetwork, AbstractKernel, AbstractGroup)
NAMES = {cls.__name__ for cls in modules_of_the_library() if issubclass(cls, KINDS)}
NAMES |= {kind.__name__ for kind in KINDS}
FREE = ("models", "kernels/averages")  # what may choose by type


def names_in(node):
    return {
        part.id if isinstance(part, ast.Name) else part.attr
        for part in ast.walk(node)
        if isinstance(part, ast.Name | ast.Attribute)
    }


def raises(statements):
    return any(isinstance(statement, ast.Raise) for statement in statements)


def checks_of_arguments(tree):
    """Return the tests of branches that raise, and of assertions."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) or (
            isinstance(node, ast.If) and (raises(node.body) or raises(node.orelse))
        ):
            found |= {id(part) for part in ast.walk(node.test)}
    return found


def named_checks(tree):
    """Return the values of names that a branch which raises looks at."""
    looked_at = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and raises(node.body):
            looked_at |= names_in(node.test)
    return {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id in looked_at for t in node.targets)
        for part in ast.walk(node.value)
    }


def dispatches(source):
    """Return what a program asks of the type of an energy, network, kernel or group."""
    tree = ast.parse(source)
    checked = checks_of_arguments(tree) | named_checks(tree)
    found = []
    for node in ast.walk(tree):
        if id(node) in checked:
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in ("isinstance", "issubclass"):
                found += sorted(names_in(node.args[1]) & NAMES)
    return found


def homes():
    """Return for each class of a kind the file that it is defined in."""
    return {
        cls.__name__: cls.__module__.removeprefix("equistein.").replace(".", "/")
        + ".py"
        for cls in modules_of_the_library()
        if issubclass(cls, KINDS)
    }


def test_nothing_asks_for_the_type_of_an_energy_network_kernel_or_group():
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        file = path.relative_to(ROOT).as_posix()
        if file.startswith(FREE):
            continue
        asked = [
            name for name in dispatches(path.read_text()) if homes().get(name) != file
        ]
        if asked:
            found[file] = asked
    assert found == {}


@pytest.mark.parametrize(
    "source",
    [
        "if isinstance(group, PointCloud):\n    x = 1",
        "x = 1 if isinstance(energy, es.energies.JointEnergy) else 2",
        "if isinstance(network, EGNN | MLP) and True:\n    x = 1\nelse:\n    x = 2",
        "y = [g for g in groups if not isinstance(g, (Trivial, Cyclic))]",
    ],
)
def test_a_question_for_the_type_is_found(source):
    assert dispatches(source)
