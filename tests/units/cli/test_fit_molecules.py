import json

import numpy as np
import pytest
from command_line import lines_of, status


@pytest.mark.slow
def test_molecules_are_fitted_from_an_xyz_file(molecular_run):
    described = json.loads((molecular_run / "config.json").read_text())
    assert described["shape"] == [2, 3]
    with np.load(molecular_run / "samples.npz", allow_pickle=False) as stored:
        assert stored["model"].shape == (6, 2, 3)
        assert np.max(np.abs(stored["model"].mean(axis=1))) < 1e-5
        lines = (molecular_run / "samples.xyz").read_text().splitlines()
        first = np.array([line.split()[1:] for line in lines[2:4]], float)
        assert len(lines) == 24
        assert np.allclose(first, stored["model"][0], atol=1e-6)
    metrics = json.loads((molecular_run / "metrics.json").read_text())
    smiles = (molecular_run / "samples.smi").read_text().splitlines()
    assert len(smiles) == round(6 * metrics["entries"]["model"]["validity"])
    assert metrics["entries"]["model"]["train_denoising_loss"] > 0
    assert "held_out_log_likelihood" not in metrics["entries"]["model"]
    report = (molecular_run / "report.html").read_text()
    assert "contrastive divergence" not in report
    assert "Plotly.newPlot" in report
    steps = [line["step"] for line in lines_of(molecular_run) if "step" in line]
    assert steps == [1, 2]


@pytest.mark.slow
def test_sampled_molecules_are_an_xyz_file_again(molecular_run, tmp_path):
    new = tmp_path / "new.xyz"
    assert status("sample", molecular_run, "--num-samples", 5, "--out", new) == 0
    lines = [line.split() for line in new.read_text().splitlines()]
    frames = [lines[i + 2 : i + 4] for i in range(0, len(lines), 4)]
    assert [[row[0] for row in frame] for frame in frames] == [["H", "F"]] * 5
    positions = np.array([[row[1:4] for row in frame] for frame in frames], float)
    assert np.max(np.abs(positions.mean(axis=1))) < 1e-5
    plain = tmp_path / "new.npy"
    assert status("sample", molecular_run, "--num-samples", 5, "--out", plain) == 0
    assert np.allclose(np.load(plain), positions, atol=1e-6)
    other = tmp_path / "other.xyz"
    assert status("sample", molecular_run, "--label", 0, "--out", other) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.npy", "new.xyz"]
