import json

import jax
import numpy as np
import pytest

from equistein.cli import main
from equistein.experiments import EXPERIMENTS
from equistein.runs import FLOOR


@pytest.fixture(autouse=True)
def _forget_what_no_other_experiment_uses():
    """Free compiled code: a process can map only so many pieces of memory."""
    yield
    jax.clear_caches()


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_runs_at_smoke_size(name, tmp_path, single_precision):
    out = tmp_path / "run"
    assert main(["run", name, "--preset", "smoke", "--out", str(out)]) == 0
    metrics = json.loads((out / "metrics.json").read_text())
    models = set(metrics) - {"seeds", "num_samples", "floor"}
    assert models
    assert FLOOR not in models
    with np.load(out / "samples.npz", allow_pickle=False) as samples:
        assert set(samples.files) == models
        for model in models:
            assert len(samples[model]) == metrics["num_samples"][model]
            assert np.all(np.isfinite(samples[model]))
    assert list((out / "figures").glob("*.png"))
    assert (out / "report.html").stat().st_size > 10_000
    assert not list((out / "checkpoint").glob("*.eqx"))
