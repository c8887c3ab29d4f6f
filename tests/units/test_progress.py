import io
import sys

import pytest

from equistein import _progress
from equistein._progress import progress_bar, show_progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def told(monkeypatch):
    monkeypatch.setitem(_progress._common, "disable", False)  # whatever was run before

    def after(file, work):
        monkeypatch.setattr(sys, "stderr", file)
        work()
        return file.getvalue()

    return after


def three():
    for _ in progress_bar(range(3), unit="epoch"):
        pass


def test_a_terminal_has_a_bar(told):
    printed = told(Terminal(), three)
    assert "0%" in printed
    assert "100%" in printed
    assert "\n" not in printed.strip()


def test_a_file_has_plain_lines(told):
    printed = told(io.StringIO(), three)
    assert "\r" not in printed
    first, *_, last = printed.splitlines()
    assert first.startswith("0 of 3 epochs")
    assert last.startswith("3 of 3 epochs")


@pytest.mark.parametrize("file", [Terminal, io.StringIO])
def test_nothing_is_shown_where_it_was_turned_off(file, told):
    show_progress(False)
    try:
        assert told(file(), three) == ""
    finally:
        show_progress(True)
