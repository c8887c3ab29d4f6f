"""Pages that compare runs, and when they are not written."""

import re

import pytest
from matplotlib.figure import Figure

from equistein.runs import (
    ReportText,
    RunFolder,
    UserError,
    write_comparison,
    write_report,
    write_text,
)

METRICS = {
    "seeds": [0, 1],
    "floor": {"energy_w2": 0.1},
    "about": {"energy_w2": {"label": "distance", "better": "lower", "unit": ""}},
}
TEXT = ReportText(
    title="t", labels={"plain": "plain EBM"}, captions={"line": "A line."}
)


def run_in(path, step, **entries):
    """Return the folder of a run with a picture."""
    made = RunFolder.create(path)
    described = {"command": "experiment", "settings": {"step": step, "sizes": [1, 2]}}
    made.write_json("config.json", described)
    rows = {"plain": {"energy_w2": 0.5}} | entries
    nums = dict.fromkeys(rows, 10)
    made.write_json("metrics.json", METRICS | {"entries": rows, "num_samples": nums})
    made.write_json("environment.json", {})
    write_text(made, TEXT)
    figure = Figure(figsize=(12, 2))
    figure.subplots().plot([0, 1])
    (path / "figures").mkdir()
    figure.savefig(path / "figures" / "line.png", dpi=150)
    return made


@pytest.fixture
def runs(tmp_path):
    return [
        run_in(tmp_path / "run", 0.1),
        run_in(tmp_path / "other", 0.2, new={"energy_w2": 0.01}),
    ]


def test_numbers_figures_and_settings_that_differ_are_side_by_side(runs, tmp_path):
    page = tmp_path / "compared.html"
    write_comparison(runs, page)
    text = page.read_text()
    for said in ("run: plain EBM", "other: plain EBM", "other: new", "A line.",
                 "run: 0.1; other: 0.2", "distance",
                 'alt="run: line: A line."'):  # fmt: skip
        assert said in text
    assert "settings.sizes" not in text
    assert '<td class="best">0.01' in text
    assert len(re.findall(r"base64,([^\"]+)", text)) == 2


def test_a_page_is_replaced_by_its_like_and_no_other_file_is(runs, tmp_path):
    page = tmp_path / "compared.html"
    write_comparison(runs, page)
    write_comparison(runs, page)
    other = tmp_path / "notes.html"
    other.write_text("mine")
    report = write_report(runs[0])
    for kept in (other, report, tmp_path):
        with pytest.raises(UserError, match="not overwritten"):
            write_comparison(runs, kept)
    assert other.read_text() == "mine"
    with pytest.raises(UserError, match="given twice"):
        write_comparison([runs[0], runs[0]], tmp_path / "page.html")
