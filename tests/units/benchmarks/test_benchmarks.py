import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[3]


@pytest.fixture
def timing(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    import benchmarks._timing

    return benchmarks._timing


@pytest.mark.slow
def test_an_unknown_benchmark_is_told_with_those_there_are():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "typing"],
        cwd=ROOT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    for name in (
        "typing",
        "first-calls",
        "programs",
        "draws",
        "growth",
        "many-steps",
        "updates",
        "blocks",
        "training",
        "epochs",
        "tempering",
        "clusters",
        "force-fields",
        "kernel-cost",
        "labels",
    ):
        assert name in done.stdout


SMALLEST = """
from benchmarks import _epochs, _growth
_growth.growth(num_sizes=1)
for contestant in _epochs.contestants(_epochs.molecules(64)).values():
    contestant.run()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [["-c", SMALLEST], ["-m", "benchmarks._first_calls", "MALA", "ours"]],
    ids=["growth and epochs", "first calls"],
)
def test_the_smallest_benchmarks_run(words):
    subprocess.run([sys.executable, *words], cwd=ROOT, check=True, timeout=600)


def test_contestants_take_turns_and_the_first_run_is_told_apart(timing):
    turns = []
    contestants = {
        "a": timing.Contestant(lambda: turns.append("a"), calls=2),
        "b": timing.Contestant(lambda: turns.append("b"), repeats=1),
    }
    times = timing.interleaved(contestants)
    assert "".join(turns) == "ab" + "ab" + "a" * (timing.REPEATS - 1)
    assert len(times["a"].later) == timing.REPEATS
    assert len(times["b"].later) == 1
