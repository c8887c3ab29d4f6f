import pathlib
import runpy

import pytest

TESTS = pathlib.Path(__file__).parents[1]
NAMED = runpy.run_path(str(TESTS / "named_mutants.py"))["NAMED"]


@pytest.mark.parametrize("name", NAMED)
def test_each_named_change_has_one_place(name):
    _, path, before, after = NAMED[name]
    source = TESTS.parent / "src/equistein" / path
    assert source.read_text().count(before) == 1
    assert before != after
