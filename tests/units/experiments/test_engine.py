"""What drives the experiments: entries, parts of a run, figures, words."""

import dataclasses
import json
import warnings
from collections.abc import Sequence
from typing import ClassVar

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.experiments import (
    Entry,
    Experiment,
    EXPERIMENTS,
    perform,
    run_experiment,
)
from equistein.experiments.engine._checks import AbstractConfig
from equistein.experiments.engine._figures import (
    Bars,
    Boxes,
    Configurations,
    Curves,
    Histograms,
)
from equistein.runs import (
    FLOOR,
    load_outcome,
    RunFolder,
    seed_outcome,
    UserError,
    Words,
    write_report,
)
from equistein.samplers import warn_of_samples


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(AbstractConfig):
    num_seeds: int = 2
    size: float = 1.0
    noise: float = 0.0
    or_zero: ClassVar[Sequence[str]] = ("noise",)


def stage(trial):
    value = jr.normal(trial.key(0), ())
    return seed_outcome(
        {"mean": value}, jnp.full((3, 2, 2), value),
        history={"epoch": np.arange(4), "loss": np.array([3.0, np.nan, 1.0, value])},
        arrays={"values": value + np.arange(5.0)},
        stacked={"table": np.eye(2)},
        events=[{"event": "roll-back"}],
    )  # fmt: skip


def experiment(*, failing=False):
    def model(trial):
        if failing and trial.index:
            raise KeyboardInterrupt
        return stage(trial)

    return Experiment(
        name="coins",
        figure="appendix E.1",
        summary="throws FashionMNIST",
        presets={"quick": Config()},
        entries=lambda config: [
            Entry(name="model", label="ours", stage=model, note="It is.", trains=True),
            Entry(name=FLOOR, label="data", stage=stage, num_seeds=3, note="A floor."),
        ],
        figures=[
            Curves("loss", "loss", "loss", level="mean", caption="F."),
            Boxes("mean", "mean", "mean"),
            Bars("bars", ["mean"], "mean"),
            Histograms("values", "values", "value"),
            Histograms("none", lambda outcome: None, "nothing"),
            Configurations("configurations", 4),
        ],
        compare=lambda config, outcomes: {"model": {"twice": np.ones(2)}},
    )  # fmt: skip


def test_seeds_are_parts_of_a_run_where_they_train_and_rows_where_not():
    parts = experiment().stages(Config(), 4)
    assert list(parts) == ["model@0", "model@1", FLOOR]
    assert parts[FLOOR]().metrics["mean"].shape == (3,)
    # The second seed of a run is the first of the next.
    later = experiment().stages(Config(), 5)["model@0"]()
    assert parts["model@1"]().metrics["mean"] == later.metrics["mean"]


def test_outcomes_hold_the_seeds_in_order():
    found = perform(experiment(), Config(), 0, None)
    model = found["model"]
    assert model.history["step"].shape == model.history["loss"].shape == (2, 4)
    assert model.arrays["values"].shape == (10,)
    assert model.arrays["table"].shape == (2, 2, 2)
    assert np.array_equal(model.metrics["twice"], np.ones(2))
    assert [event["seed_index"] for event in model.events] == [0, 1]
    assert model.metrics["mean"][0] != model.metrics["mean"][1]


def test_what_a_run_warns_of_is_in_its_report(tmp_path):
    """Once for all seeds; other warnings go on as they came."""

    def doubtful(trial):
        warn_of_samples("MALA: it stood still.")
        return stage(trial)

    made = experiment()
    entries = [Entry(name="model", stage=doubtful, note="It is.", num_seeds=2)]
    made = dataclasses.replace(made, entries=lambda config: entries, figures=[])
    folder = RunFolder.create(tmp_path)
    folder.write_config({"command": "run"})
    told = []
    perform(made, Config(), 0, folder, warn=told.append)
    assert told == ["model: MALA: it stood still."]
    perform(made, Config(), 0, folder, warn=told.append)  # done before, told again
    assert len(told) == 2
    page = (tmp_path / "report.html").read_text()
    assert page.count("MALA: it stood still.") == 1
    assert "<h2>To doubt</h2>" in page
    assert [e for e in load_outcome(folder, "model").events if "text" in e]

    def loud(trial):
        warnings.warn("another", stacklevel=1)

    entries[0] = dataclasses.replace(entries[0], stage=loud)
    with pytest.raises(UserWarning, match="another"):
        made.stages(Config(), 0)["model"]()


def test_parts_that_do_not_fit_together_are_told(tmp_path):
    """As one that was edited by hand, and has no checksum."""
    folder = RunFolder.create(tmp_path)
    folder.write_config({"command": "run"})
    perform(experiment(), Config(), 0, folder)
    parts = folder.read_arrays("checkpoint/model@0.npz")
    del parts["sha256"]
    parts["arrays:table"] = np.ones((1, 7))
    folder.write_arrays("checkpoint/model@0.npz", parts)
    with pytest.raises(UserError, match="do not fit together .*model@0"):
        perform(experiment(), Config(), 0, folder)


def test_an_interrupted_run_writes_what_is_finished_and_goes_on(tmp_path):
    folder = RunFolder.create(tmp_path)
    folder.write_config({"command": "run"})
    with pytest.raises(KeyboardInterrupt):
        perform(experiment(failing=True), Config(), 0, folder, preset="quick")
    assert (tmp_path / "checkpoint/model@0.npz").is_file()
    assert json.loads((tmp_path / "metrics.json").read_text())["num_samples"] == {
        "model": 3
    }
    said = f"1 of 3 parts is done; `equistein resume {tmp_path}` goes on."
    assert said in (tmp_path / "report.html").read_text()
    told = []
    perform(experiment(), Config(), 0, folder, preset="quick", tell=told.append)
    assert "parts is done" not in (tmp_path / "report.html").read_text()
    assert "[1/3] coins: model@0: done before" in told
    ends = [
        line for line in told if " s" in line and ":" in line.partition("coins: ")[2]
    ]
    assert [" left" in line for line in ends] == [True, False]
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics["num_samples"] == {"model": 6}
    assert metrics["seeds"] == [0, 1]
    names = {path.stem for path in (tmp_path / "figures").glob("*.png")}
    assert names == {"loss", "mean", "bars", "values", "configurations"}


def test_what_a_run_concludes_is_said_first_in_its_report(tmp_path):
    folder, told = RunFolder.create(tmp_path), []
    folder.write_config({"command": "run"})
    concluding = dataclasses.replace(
        experiment(),
        conclude=lambda config, outcomes: f"{config.num_seeds} of {len(outcomes)} < 3.",
    )
    perform(concluding, Config(), 0, folder, tell=told.append)
    assert told[-1] == "2 of 2 < 3."
    write_report(folder, Words(title="coins"))  # anew, from the folder alone
    report = (tmp_path / "report.html").read_text()
    assert report.index("2 of 2 &lt; 3.") < report.index("<figure>")


def test_the_report_keeps_names_as_they_are_written():
    words = experiment().words(Config(), "quick")
    assert words.lead == (
        "Throws FashionMNIST. Appendix E.1 of Jaini, Holdijk and Welling (2021); "
        "preset quick."
    )
    assert words.notes == {"model": "It is."}
    assert words.captions["loss"] == "F."
    assert (words.floor, words.floor_note) == ("data", "A floor.")


def test_a_color_is_that_of_the_entry_whatever_else_is_there():
    whole = perform(experiment(), Config(), 0, None)
    alone = experiment().draw(Config(), {FLOOR: whole[FLOOR]})["loss"]
    both = experiment().draw(Config(), whole)["loss"]
    last = both.axes[0].lines[1]
    assert last.get_label() == alone.axes[0].lines[0].get_label() == "data"
    assert last.get_color() == alone.axes[0].lines[0].get_color()
    assert list(both.axes[0].lines[0].get_xdata()) == [0, 2, 3]  # NaN was not looked at


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"size": 0.0}, "`size` must be a finite number above 0, but got 0.0"),
        ({"size": float("inf")}, "`size` must be a finite number"),
        ({"size": float("nan")}, "`size` must be a finite number"),
        ({"noise": -1.0}, "`noise` must be a finite number from 0 on"),
        ({"num_seeds": 0}, "`num_seeds` must be a whole number above 0"),
    ],
)
def test_wrong_settings_are_refused(wrong, said):
    with pytest.raises(ValueError, match=said):
        Config(**wrong)


@pytest.mark.usefixtures("single_precision")
def test_an_experiment_runs_from_python(tmp_path, monkeypatch):
    monkeypatch.setitem(EXPERIMENTS, "coins", experiment())
    found = run_experiment("coins", "quick", folder=tmp_path / "run")
    assert found["model"].samples.shape == (6, 2, 2)
    assert found[FLOOR].metrics["mean"].shape == (3,)
    assert (tmp_path / "run/report.html").is_file()
    with pytest.raises(UserError, match="not empty"):
        run_experiment("coins", Config(), folder=tmp_path / "run")


def test_an_unknown_experiment_or_preset_is_told():
    with pytest.raises(ValueError, match="`name` must be one of c4-gaussians"):
        run_experiment("two-squares")
    with pytest.raises(ValueError, match="`config` must be a configuration, or one of"):
        run_experiment("two-circles", "slow")
