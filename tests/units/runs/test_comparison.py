"""Pages that compare runs, and when they are not written."""

import base64
import io
import json
import re

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from equistein.runs import RunFolder, UserError, Words, write_comparison, write_report

METRICS = {
    "plain": {"energy_w2": 0.5},
    "seeds": [0, 1],
    "num_samples": {"plain": 10},
    "floor": {"energy_w2": 0.1},
}
WORDS = Words(title="t", labels={"plain": "plain EBM"}, captions={"line": "A line."})


def run_in(path, step, **entries):
    """Return the folder of a run with a picture and a history."""
    made = RunFolder.create(path)
    made.write_config({"command": "run", "config": {"step": step, "sizes": [1, 2]}})
    made.write_json("metrics.json", METRICS | entries)
    made.write_json("environment.json", {})
    figure = Figure(figsize=(12, 2))
    figure.subplots().plot([0, 1])
    (path / "figures").mkdir()
    figure.savefig(path / "figures" / "line.png", dpi=150)
    lines = [
        {"name": "plain", "seed_index": seed, "step": i, "log_density": i + step}
        for seed in range(2)
        for i in range(3)
    ]
    lines.append({"name": "plain", "event": "warning", "text": "It drifts."})
    made.write("history.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    return made


@pytest.fixture
def runs(tmp_path):
    return [
        run_in(tmp_path / "run", 0.1),
        run_in(tmp_path / "other", 0.2, new={"energy_w2": 0.01}),
    ]


def test_numbers_figures_and_settings_that_differ_are_side_by_side(runs, tmp_path):
    page = tmp_path / "compared.html"
    write_comparison(runs, [WORDS, WORDS], page)
    text = page.read_text()
    for said in ("run: plain EBM", "other: plain EBM", "other: new", "A line.",
                 "run: 0.1; other: 0.2", "distance of energies",
                 'alt="run: line: A line."', "history of log density"):  # fmt: skip
        assert said in text
    assert "config.sizes" not in text
    assert '<td class="best">0.01' in text
    pictures = [
        Image.open(io.BytesIO(base64.b64decode(found)))
        for found in re.findall(r"base64,([^\"]+)", text)
    ]
    assert [p.width for p in pictures[:2]] == [1000, 1000]  # of 1800
    assert len(pictures) == 3
    assert len(text) < 200_000


def test_a_page_is_replaced_by_its_like_and_no_other_file_is(runs, tmp_path):
    page = tmp_path / "compared.html"
    write_comparison(runs, [WORDS, WORDS], page)
    write_comparison(runs, [WORDS, WORDS], page)
    other = tmp_path / "notes.html"
    other.write_text("mine")
    report = write_report(runs[0], WORDS)
    for kept in (other, report, tmp_path):
        with pytest.raises(UserError, match="it is not overwritten: choose another"):
            write_comparison(runs, [WORDS, WORDS], kept)
    assert other.read_text() == "mine"


@pytest.mark.parametrize("content", [b"no picture", b"\x89PNG\r\n\x1a\n" + b"\0" * 40])
def test_a_damaged_picture_is_named(runs, tmp_path, content):
    picture = runs[1].path / "figures" / "line.png"
    picture.write_bytes(content)
    with pytest.raises(UserError, match="other/figures/line.png: it is no picture"):
        write_comparison(runs, [WORDS, WORDS], tmp_path / "compared.html")
    assert not (tmp_path / "compared.html").exists()


def test_a_damaged_history_is_refused(runs, tmp_path):
    runs[0].write("history.jsonl", "{")
    with pytest.raises(UserError, match="damaged"):
        write_comparison(runs, [WORDS, WORDS], tmp_path / "compared.html")


def test_runs_without_a_history_or_pictures_are_compared(runs, tmp_path):
    (runs[0].path / "history.jsonl").unlink()
    (runs[0].path / "figures" / "line.png").unlink()
    write_comparison(runs, [WORDS, WORDS], tmp_path / "compared.html")
    text = (tmp_path / "compared.html").read_text()
    assert text.count("base64,") == 1
    assert np.isclose(text.count("history of"), 0)


def test_a_run_is_not_compared_with_itself(runs, tmp_path):
    with pytest.raises(UserError, match="given twice"):
        write_comparison([runs[0], runs[0]], [WORDS, WORDS], tmp_path / "page.html")
