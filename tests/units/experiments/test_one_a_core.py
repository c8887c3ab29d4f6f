"""Parts of a run that the cores of a processor make side by side."""

import dataclasses
import threading
import time

import jax
import numpy as np
import pytest

from equistein import _progress
from equistein._progress import progress_bar
from equistein.experiments import Entry, Experiment, perform
from equistein.experiments.engine import _run
from equistein.experiments.engine._checks import AbstractConfig
from equistein.experiments.engine._once import once, OnceProperty
from equistein.experiments.engine._one_a_core import one_a_core
from equistein.runs import load_outcome, RunFolder, seed_outcome
from equistein.samplers import warn_of_samples

_SECONDS = 20.0  # that none waits for another


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(AbstractConfig):
    num_seeds: int = 4


def made(stage, **options):
    return Experiment(
        name="coins", figure="none", summary="throws", presets={"quick": Config()},
        entries=lambda config: [Entry(name="model", stage=stage, trains=True)],
        figures=[], **options,
    )  # fmt: skip


def outcome(value=1.0):
    return seed_outcome({"mean": value}, np.full((3, 2), value))


def go_on_for_long():
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end:
        pass


@pytest.fixture
def two_cores(monkeypatch):
    monkeypatch.setattr(_run, "num_shares", lambda runs, like: min(runs, 2))


@pytest.mark.usefixtures("two_cores")
def test_two_parts_are_made_at_once_and_give_what_they_give_alone(tmp_path):
    meeting = threading.Barrier(2, timeout=_SECONDS)

    def meet(trial):
        meeting.wait()
        warn_of_samples(f"seed {trial.index} is odd.")
        return outcome(float(jax.random.normal(trial.key(0))))

    def alone(trial):
        return outcome(float(jax.random.normal(trial.key(0))))

    folder, told, doubts = RunFolder.create(tmp_path), [], []
    folder.write_config({"command": "run"})
    both = made(meet, one_a_core=True)
    found = perform(
        both, Config(), 0, folder, tell=told.append, warn=doubts.append
    )["model"]  # fmt: skip
    wanted = perform(made(alone), Config(), 0, None)["model"]
    assert np.array_equal(found.samples, wanted.samples)
    assert np.array_equal(found.metrics["mean"], wanted.metrics["mean"])
    assert sorted(doubts) == [f"model@{i}: seed {i} is odd." for i in range(4)]
    assert told[:2] == ["[1/4] coins: model@0 ...", "[2/4] coins: model@1 ..."]
    meeting = threading.Barrier(2, timeout=0.1)
    with pytest.raises(threading.BrokenBarrierError):
        perform(made(meet), Config(), 0, None)


@pytest.mark.usefixtures("two_cores")
def test_an_error_ends_the_other_part_where_it_is(tmp_path):
    begun, ended, late = threading.Event(), threading.Event(), []

    def fail(trial):
        if trial.index == 0:
            return outcome()
        if trial.index == 1:
            assert begun.wait(_SECONDS)
            raise ValueError("a coin is lost")
        try:
            begun.set()
            go_on_for_long()
            late.append(trial.index)
        finally:
            ended.set()

    folder = RunFolder.create(tmp_path)
    folder.write_config({"command": "run"})
    num_threads = threading.active_count()
    with pytest.raises(ValueError, match="a coin is lost"):
        perform(made(fail, one_a_core=True), Config(), 0, folder)
    assert ended.is_set()
    assert not late
    assert threading.active_count() == num_threads
    assert load_outcome(folder, "model@0") is not None
    assert load_outcome(folder, "model@2") is None


def test_what_is_finished_is_kept_when_it_is_interrupted():
    kept, done = [], threading.Event()

    def first():
        done.set()
        return outcome()

    def begins(name):
        if name == "second":
            assert done.wait(_SECONDS)
            raise KeyboardInterrupt

    def second():
        go_on_for_long()
        return outcome()

    with pytest.raises(KeyboardInterrupt):
        one_a_core(
            {"first": first, "second": second}, 2, begins,
            lambda name, *_: kept.append(name),
        )  # fmt: skip
    assert kept == ["first"]


def test_the_bar_of_each_part_begins_with_its_name(capsys, monkeypatch):
    monkeypatch.setattr(_progress._Shown, "value", True)  # whatever was run before

    def stage():
        for _ in progress_bar(range(3), unit="epoch"):
            pass
        return outcome()

    names = {"plain@0": stage, "plain@1": stage}
    one_a_core(names, 2, lambda name: None, lambda *_: None)
    stage()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 6
    for name in names:
        assert [line for line in lines if line.startswith(f"{name}: compiling: 0 of 3")]
        assert [line for line in lines if line.startswith(f"{name}: 3 of 3 epochs")]
    assert lines[-1].startswith("3 of 3 epochs")


def test_what_parts_share_is_computed_by_one_of_them():
    calls, both = [], threading.Barrier(2, timeout=_SECONDS)

    @once
    def square(number):
        calls.append(number)
        time.sleep(0.1)
        return number**2

    class Shared:
        @OnceProperty
        def square(self):
            return square(4)

    shared = Shared()

    def stage():
        both.wait()
        assert square(3) == 9
        assert shared.square == 16
        return outcome()

    names = {"plain@0": stage, "plain@1": stage}
    one_a_core(names, 2, lambda name: None, lambda *_: None)
    assert calls == [3, 4]
