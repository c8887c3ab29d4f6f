"""Which tests run which lines: what `mutants` asks before it changes one.

As a plugin of pytest (`-p tests_of_lines`) it has each test compile what it takes: the
lines of what is compiled already are not run again.
"""

import ast
import collections
import os
import pathlib
import subprocess
import sys

import coverage
import jax

ROOT = pathlib.Path(__file__).parents[1]
SOURCE = ROOT / "src/equistein"


def pytest_runtest_setup():
    """Forget what earlier tests have compiled."""
    jax.clear_caches()


class TestsOfLines:
    """The tests of a package by the lines that they run, which a file keeps."""

    __test__ = False

    def __init__(self, tests, marks, kept, jobs):
        if not kept.exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            command = [
                sys.executable, "-m", "pytest", "-q", "-p", "tests_of_lines",
                "-p", "no:cacheprovider", "-n", str(jobs), "--dist", "worksteal",
                "--cov=equistein", "--cov-context=test", "--cov-report=", "-m", marks,
                *(f"tests/{test}" for test in tests),
            ]  # fmt: skip
            paths = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
            made = kept.with_suffix(".part")
            environment = {"COVERAGE_FILE": str(made), "PYTHONPATH": paths}
            ran = subprocess.run(command, cwd=ROOT, env=os.environ | environment)
            if ran.returncode not in (0, 5):
                raise SystemExit("The tests must pass before anything is changed.")
            made.rename(kept)
        self._data = coverage.CoverageData(str(kept))
        self._data.read()
        # Tests that run little are told first: they say most of the lines they run.
        self._breadth = collections.Counter()
        for file in self._data.measured_files():
            for contexts in self._data.contexts_by_lineno(file).values():
                self._breadth.update(contexts)

    def of(self, path, line):
        """Return the names of the tests that run a line's statement, None for imports.

        A fixture counts for all tests of the file of the first one that takes it.
        """
        by_line = self._data.contexts_by_lineno(str(SOURCE / path))
        lines = statement(SOURCE / path, line)
        found = {context for number in lines for context in by_line.get(number, ())}
        if "" in found and len(found) == 1:
            return None
        found.discard("")
        ordered = sorted(found, key=lambda context: (self._breadth[context], context))
        names = dict.fromkeys(context.rpartition("|")[0] for context in ordered)
        shared = {
            context.partition("::")[0] for context in found if context.endswith("setup")
        }
        return [*names, *sorted(shared)]


def statement(path, line):
    """Return the lines of the innermost statement around one, of a block its head."""
    around = [
        node for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.stmt) and node.lineno <= line <= node.end_lineno
    ]  # fmt: skip
    if not around:
        return range(line, line + 1)
    node = max(around, key=lambda node: node.lineno)
    body = getattr(node, "body", None)
    return range(node.lineno, body[0].lineno if body else node.end_lineno + 1)
