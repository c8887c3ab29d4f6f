"""What drives the experiments: entries, parts of a run, figures, text."""

import dataclasses
import json
import warnings
from collections.abc import Sequence
from typing import ClassVar

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.runs import FLOOR, load_part, Metric, seed_outcome, UserError
from equistein.samplers import warn_of_samples
from experiments._engine import AbstractConfig, Entry, Experiment, join_seeds
from experiments._figures import boxes, configurations, curves, histograms
from experiments._perform import open_folder, perform


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
        metrics={"mean": Metric("mean of coins", "lower")},
        entries=lambda config: [
            Entry(name="model", label="ours", stage=model, note="It is.", trains=True),
            Entry(name=FLOOR, label="data", stage=stage, num_seeds=3, note="A floor."),
        ],
        figures=[
            curves("loss", "loss", "loss", level="mean", caption="F."),
            boxes("mean", "mean", "mean"),
            histograms("values", "values", "value"),
            histograms("none", lambda outcome: None, "nothing"),
            configurations(4),
        ],
        compare=lambda config, outcomes: {"model": {"twice": np.ones(2)}},
    )  # fmt: skip


def opened(made, path):
    return open_folder(made, Config(), "quick", 0, path)


def test_seeds_are_parts_of_a_run_where_they_train_and_rows_where_not():
    parts = experiment().stages(Config(), 4)
    assert list(parts) == ["model@0", "model@1", FLOOR]
    assert parts[FLOOR]().metrics["mean"].shape == (3,)
    # The second seed of a run is the first of the next.
    later = experiment().stages(Config(), 5)["model@0"]()
    assert parts["model@1"]().metrics["mean"] == later.metrics["mean"]


def test_outcomes_hold_the_seeds_in_order():
    found = perform(experiment(), Config())
    model = found["model"]
    assert model.history["step"].shape == model.history["loss"].shape == (2, 4)
    assert model.arrays["values"].shape == (10,)
    assert model.arrays["table"].shape == (2, 2, 2)
    assert np.array_equal(model.metrics["twice"], np.ones(2))
    assert [event["seed_index"] for event in model.events] == [0, 1]
    assert model.metrics["mean"][0] != model.metrics["mean"][1]


def test_warnings_of_a_part_are_printed_and_in_the_report(tmp_path):
    """Once for all seeds; other warnings go on as they came."""

    def stuck(trial):
        warn_of_samples("MALA: it stood still.")
        return stage(trial)

    made = experiment()
    entries = [Entry(name="model", stage=stuck, note="It is.", num_seeds=2)]
    made = dataclasses.replace(made, entries=lambda config: entries, figures=[])
    folder, lines = opened(made, tmp_path), []
    perform(made, Config(), folder=folder, say=lines.append)
    said = "warning: model: MALA: it stood still."
    assert lines.count(said) == 1
    perform(made, Config(), folder=folder, say=lines.append)  # done before
    assert lines.count(said) == 2
    page = (tmp_path / "report.html").read_text()
    assert page.count("MALA: it stood still.") == 1
    assert [e for e in load_part(folder, "model").events if "text" in e]

    def loud(trial):
        warnings.warn("another", stacklevel=1)

    entries[0] = dataclasses.replace(entries[0], stage=loud)
    with pytest.raises(UserWarning, match="another"):
        made.stages(Config(), 0)["model"]()


def test_the_seeds_of_a_model_are_joined():
    event = {"event": "roll-back", "epoch": 3}
    one, two = (
        seed_outcome({"w1": value}, np.ones((num, 2)), events=[event])
        for value, num in ((1.0, 3), (3.0, 2))
    )
    both = join_seeds({"plain@0": one, "plain@1": two, FLOOR: one})
    assert set(both) == {"plain", FLOOR}
    assert both["plain"].metrics["w1"].tolist() == [1.0, 3.0]
    assert both["plain"].samples.shape == (5, 2)
    assert [each["seed_index"] for each in both["plain"].events] == [0, 1]


def test_an_interrupted_run_writes_what_is_finished_and_continues(tmp_path):
    folder = opened(experiment(), tmp_path)
    with pytest.raises(KeyboardInterrupt):
        perform(experiment(failing=True), Config(), folder=folder)
    assert (tmp_path / "checkpoint/model@0.npz").is_file()
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics["num_samples"] == {"model": 3}
    assert "Still to be done: floor, model@1." in (tmp_path / "report.html").read_text()
    lines = []
    perform(experiment(), Config(), folder=folder, say=lines.append)
    assert "Still to be done" not in (tmp_path / "report.html").read_text()
    assert "[1/3] coins: model@0: done before" in lines
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics["num_samples"] == {"model": 6}
    assert metrics["seeds"] == [0, 1]
    assert metrics["about"]["mean"]["label"] == "mean of coins"
    names = {path.stem for path in (tmp_path / "figures").glob("*.png")}
    assert names == {"loss", "mean", "values", "configurations"}


def test_the_same_command_continues_a_run_and_another_is_refused(tmp_path):
    opened(experiment(), tmp_path).release()
    opened(experiment(), tmp_path).release()
    for config, seed in ((Config(size=2.0), 0), (Config(), 1)):
        with pytest.raises(UserError, match="other settings"):
            open_folder(experiment(), config, "quick", seed, tmp_path)


def test_the_report_keeps_names_as_they_are_written():
    text = experiment().text(Config(size=2.0), "quick")
    assert text.lead.startswith("Throws FashionMNIST. Appendix E.1 of")
    assert text.lead.endswith("preset quick.")
    assert text.notes == {"model": "It is."}
    assert text.captions["loss"] == "F."
    assert (text.floor, text.floor_note) == ("data", "A floor.")


def test_a_color_is_that_of_the_entry_whatever_else_is_there():
    whole = perform(experiment(), Config())
    alone = experiment().draw(Config(), {FLOOR: whole[FLOOR]})["loss"]
    both = experiment().draw(Config(), whole)["loss"]
    last = both.axes[0].lines[1]
    assert last.get_label() == alone.axes[0].lines[0].get_label() == "data"
    assert last.get_color() == alone.axes[0].lines[0].get_color()
    assert list(both.axes[0].lines[0].get_xdata()) == [0, 2, 3]  # NaN was not looked at


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("size", 0.0), ("size", float("inf")), ("size", float("nan")),
        ("noise", -1.0), ("num_seeds", 0),
    ],
)  # fmt: skip
def test_wrong_settings_are_refused(name, value):
    with pytest.raises(ValueError, match=f"`{name}`"):
        Config(**{name: value})
