import os
import subprocess
import sys

import numpy as np
import pytest

from equistein.cli import _compiled

RUN = "run two-circles --preset smoke --num-seeds 1 --num-particles 6 --num-steps 8"
MAIN = "import sys; from equistein.cli import main; sys.exit(main())"


def command(tmp_path, out, **variables):
    """Run the command line in a process of its own; return samples and messages."""
    hidden = {"JAX_COMPILATION_CACHE_DIR", "JAX_ENABLE_COMPILATION_CACHE"}
    kept = {name: text for name, text in os.environ.items() if name not in hidden}
    cache = {"EQUISTEIN_CACHE": str(tmp_path / "cache"), **variables}
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *RUN.split(), "--out", str(tmp_path / out)],
        env=kept | cache, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "Error reading" not in done.stderr
    with np.load(tmp_path / out / "samples.npz") as samples:
        return {name: samples[name] for name in samples}, done.stderr


def programs(tmp_path):
    return sorted((tmp_path / "cache").rglob("*-cache"))


def same(first, second):
    return first.keys() == second.keys() and all(
        np.array_equal(first[name], second[name]) for name in first
    )


@pytest.mark.slow
def test_a_second_command_compiles_nothing_and_damage_is_compiled_anew(tmp_path):
    once, _ = command(tmp_path, "once")
    kept = programs(tmp_path)
    assert 20 < len(kept) < 85  # operations one by one would be as many again
    again, _ = command(tmp_path, "again")
    assert same(once, again)
    assert programs(tmp_path) == kept
    for path in kept:
        path.write_bytes(path.read_bytes()[:-8] + b"x" * 8)
    damaged, _ = command(tmp_path, "damaged")
    assert same(once, damaged)


@pytest.mark.slow
def test_a_cache_that_cannot_be_written_or_is_off_does_no_harm(tmp_path):
    file = tmp_path / "file"
    file.touch()
    _, told = command(tmp_path, "unwritable", EQUISTEIN_CACHE=str(file / "cache"))
    assert "is not kept for the next command" in told
    command(tmp_path, "off", JAX_ENABLE_COMPILATION_CACHE="0")
    assert not programs(tmp_path)


def test_what_was_written_first_goes_where_there_is_too_much(tmp_path, monkeypatch):
    monkeypatch.setattr(_compiled, "_LIMIT", 25)
    for age, name in enumerate("abc"):
        path = tmp_path / name
        path.write_bytes(b"x" * 10)
        os.utime(path, (1_000 + age, 1_000 + age))
    _compiled._remove_oldest(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "c"]


def test_processors_with_other_instructions_have_other_folders(tmp_path, monkeypatch):
    names = set()
    for flags in ("flags\t: sse avx\n", "flags\t: sse\n", "Features\t: neon\n", ""):
        file = tmp_path / "cpuinfo"
        file.write_text(f"model name : x\n{flags}")
        monkeypatch.setattr(_compiled, "_CPUINFO", file)
        names.add(_compiled._processor())
    monkeypatch.setattr(_compiled, "_CPUINFO", tmp_path / "none")
    assert len(names) == 4
    assert _compiled._processor() in names
