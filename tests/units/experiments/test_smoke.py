import functools
import json
import os

import jax
import numpy as np
import pytest

from browser import check_report, needs_browser
from equistein.cli import main
from equistein.experiments import EXPERIMENTS
from equistein.runs import FLOOR
from equistein.runs._headlines import headlines

# Their reports are opened in Chromium; without it these tests are skipped, and say so.
LOOKED_AT = ("c4-gaussians", "dw4", "molecules", "images", "mixture")
# One of each kind runs twice, with the same seed; all with EQUISTEIN_TEST_TWICE=all.
TWICE = ("c4-gaussians", "dw4", "hidden-units", "lj13-sampling", "molecules")
if os.environ.get("EQUISTEIN_TEST_TWICE") == "all":
    TWICE = tuple(EXPERIMENTS)


def results(folder):
    """Return what a seed decides: all bytes and numbers, apart from times."""
    metrics = json.loads((folder / "metrics.json").read_text())
    for numbers in metrics.values():
        if isinstance(numbers, dict):
            for name in [name for name in numbers if name.startswith("seconds")]:
                del numbers[name]
    return (folder / "samples.npz").read_bytes(), json.dumps(metrics)


@pytest.fixture(autouse=True)
def _forget_what_no_other_experiment_uses():
    """Free compiled code: a process can map only so many pieces of memory."""
    yield
    jax.clear_caches()


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Give the folder of a smoke run, made once."""

    @functools.cache
    def folder(name):
        out = tmp_path_factory.mktemp("smoke") / name
        assert main(["run", name, "--preset", "smoke", "--out", str(out)]) == 0
        return out

    return folder


HEAVY = ("lj55-sampling",)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.heavy) if name in HEAVY else name
        for name in EXPERIMENTS
    ],
)
def test_every_experiment_runs_at_smoke_size(name, ran, tmp_path, single_precision):
    if name == "cluster":
        pytest.importorskip("ase")
    out = ran(name)
    metrics = json.loads((out / "metrics.json").read_text())
    models = set(metrics) - {"seeds", "num_samples", "floor"}
    assert models
    assert FLOOR not in models
    with np.load(out / "samples.npz", allow_pickle=False) as samples:
        assert set(samples.files) == models
        for model in models:
            assert len(samples[model]) == metrics["num_samples"][model]
            assert np.all(np.isfinite(samples[model]))
    words = EXPERIMENTS[name].words(EXPERIMENTS[name].presets["smoke"], "smoke")
    said = headlines(metrics, words.headlines, words.floor)
    # A sampler may not get as far as MALA in a smoke run, which is null.
    assert len(said) >= len(words.headlines) - (
        "evaluations_to_mala" in words.headlines
    )
    assert list((out / "figures").glob("*.png"))
    assert (out / "report.html").stat().st_size > 10_000
    assert not list((out / "checkpoint").glob("*.eqx"))
    if name in TWICE:
        again = tmp_path / "again"
        assert main(["run", name, "--preset", "smoke", "--out", str(again)]) == 0
        assert results(again) == results(out)


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("name", LOOKED_AT)
def test_a_report_is_shown_in_chromium(name, ran, tmp_path, single_precision):
    check_report(ran(name) / "report.html", tmp_path)
