"""How `make test-matrix` finds the Pythons that are at hand."""

import pathlib
import sys

import pytest

import matrix

NAME = f"python{sys.version_info[0]}.{sys.version_info[1]}"


def executable(path, text):
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def shim(tmp_path, monkeypatch):
    """A command that names this Python and fails, the first on the path."""
    shim = executable(tmp_path / "shims" / NAME, "exit 127")
    monkeypatch.setenv("PATH", str(shim.parent))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    return shim


def test_a_shim_that_fails_is_no_python(shim):
    assert not matrix.works(shim)
    assert matrix.found(NAME) is None


def test_one_behind_a_shim_is_found(shim, tmp_path, monkeypatch):
    text = f'exec "{sys.executable}" "$@"'
    kept = executable(
        tmp_path / "pyenv/versions" / f"{NAME[6:]}.9" / "bin" / NAME, text
    )
    assert matrix.found(NAME) == str(kept)
    beside = executable(tmp_path / "bin" / NAME, text)
    monkeypatch.setenv("PATH", f"{shim.parent}:{beside.parent}")
    assert matrix.found(NAME) == str(beside)


def test_another_version_by_that_name_is_none(tmp_path):
    other = executable(tmp_path / "bin" / "python3.99", f'exec "{sys.executable}" "$@"')
    assert not matrix.works(other)
    assert not matrix.works(pathlib.Path(tmp_path / "python3.98"))
