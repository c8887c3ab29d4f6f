import json
import shutil

import numpy as np
import pytest
from command_line import status


def test_resuming_a_fit_whose_data_changed_is_refused(whole_fit, tmp_path, capsys):
    run = shutil.copytree(whole_fit, tmp_path / "run")
    described = json.loads((run / "config.json").read_text())
    with np.load(described["data"]) as stored:
        points, classes = stored["x"], stored["y"]
    other = tmp_path / "other.npz"
    np.savez(other, x=points + 1e-3, y=classes)
    (run / "config.json").write_text(json.dumps(described | {"data": str(other)}))
    assert status("resume", run) == 2
    assert "is not what" in capsys.readouterr().err
    other.unlink()
    assert status("resume", run) == 2
    assert "is gone" in capsys.readouterr().err


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["settings"].update(num_epochs=0),
        lambda d: d["settings"].pop("bandwidth"),
        lambda d: d.update(settings=None),
        lambda d: d["problem"].update(seed=-1),
        lambda d: d.update(problem=None),
        lambda d: d.update(data=None),
        lambda d: d.update(command="walk"),
    ],
)
@pytest.mark.parametrize("began", [True, False])
def test_a_fit_whose_description_was_changed_by_hand_is_not_resumed(
    change, began, whole_fit, tmp_path, monkeypatch, capsys, unchecked
):
    run = tmp_path / "run"
    shutil.copytree(whole_fit, run)
    if not began:  # without the fingerprint of the settings
        (run / "environment.json").unlink()
    described = json.loads((run / "config.json").read_text())
    change(described)
    (run / "config.json").write_text(json.dumps(described))
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    monkeypatch.chdir(tmp_path)
    assert status("resume", run) == 2
    caught = capsys.readouterr()
    assert caught.err.startswith("equistein: ")
    after = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert after == before


def test_reports_are_written_again(tmp_path, whole_fit):
    runs = [shutil.copytree(whole_fit, tmp_path / name) for name in "ab"]
    for run in runs:
        (run / "report.html").unlink()
    assert status("report", *runs) == 0
    reports = [(run / "report.html").read_text() for run in (whole_fit, *runs)]
    assert reports == reports[:1] * 3
