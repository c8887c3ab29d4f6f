import functools
import json
import os
import pathlib

import jax
import pytest

from browser import check_report, needs_browser
from equistein.runs import FLOOR
from experiments import experiment, MODULES
from experiments.__main__ import main

# Their reports are opened in Chromium; without it these tests are skipped, and say so.
LOOKED_AT = ("c4-gaussians", "dw4", "molecules", "images", "mixture")
RUNS = [
    *(name for name in MODULES if not experiment(name).choice and name != "lj55"),
    pytest.param("lj55", marks=pytest.mark.heavy),
    "particle-sampling --system dw4",
    "objectives --data dw4",
]
# One that samples and one that learns run twice, with the same seed; all with
# EQUISTEIN_TEST_TWICE=all.
TWICE = ("c4-gaussians", "dw4")
PACKAGES = {"cluster": "ase", "alanine-dipeptide": "openmm", "posteriordb": "numpyro"}
FOLDERS = {"molecules": "qm9", "posteriordb": "posteriordb"}
TWICE_ALL = os.environ.get("EQUISTEIN_TEST_TWICE") == "all"


def results(folder):
    """Return what a seed decides."""
    return json.loads((folder / "per_seed.json").read_text())


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
        if name in PACKAGES:
            pytest.importorskip(PACKAGES[name])
        data = pathlib.Path(os.environ.get("EQUISTEIN_DATA", ""))
        if not (data / FOLDERS.get(name, "")).is_dir():
            pytest.skip(f"{FOLDERS[name]} is not in the folder $EQUISTEIN_DATA")
        out = tmp_path_factory.mktemp("smoke") / "run"
        assert main([*name.split(), "--preset", "smoke", "--out", str(out)]) == 0
        return out

    return folder


@pytest.mark.slow
# Few clouds, rightly; and the frames of chains that have hardly begun to move.
@pytest.mark.filterwarnings("ignore:The standard error of", "ignore:`forces` are")
@pytest.mark.filterwarnings("ignore:free_energy. values of")
@pytest.mark.parametrize("name", RUNS)
def test_every_experiment_runs_at_smoke_size(name, ran, tmp_path, single_precision):
    out = ran(name)
    metrics = json.loads((out / "metrics.json").read_text())
    models = set(metrics["entries"])
    assert models
    assert FLOOR not in models
    assert set(metrics["num_samples"]) == models
    seen = {key for row in metrics["entries"].values() for key in row}
    known = set(json.loads((out / "report.json").read_text())["headlines"]) & seen
    assert len(known) >= 2
    assert known <= set(metrics["about"])
    assert (out / "samples.npz").is_file()
    assert list((out / "figures").glob("*.png"))
    assert (out / "report.html").stat().st_size > 10_000
    assert not list((out / "checkpoint").glob("*.training"))
    if TWICE_ALL or name in TWICE:
        again = tmp_path / "again"
        assert main([*name.split(), "--preset", "smoke", "--out", str(again)]) == 0
        assert results(again) == results(out)


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("name", LOOKED_AT)
def test_a_report_is_shown_in_chromium(name, ran, tmp_path, single_precision):
    check_report(ran(name) / "report.html", tmp_path)
