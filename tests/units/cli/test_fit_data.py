"""What `fit` says of the data before it trains, and at the top of the report."""

import numpy as np
import pytest
from command_line import status, TINY, TINY_GRAPH

import equistein as es
from equistein.molecules import write_xyz


def test_a_warning_is_printed_once_and_strict_makes_it_an_error(
    tmp_path, far_atoms, capsys
):
    path = tmp_path / "hf.xyz"
    write_xyz(path, "HF", np.concatenate([far_atoms, far_atoms[:4]]))
    begin = ["fit", path, "--group", "point-cloud", *TINY_GRAPH, "--dry-run"]
    assert status(*begin) == 0
    printed = capsys.readouterr()
    assert (printed.out + printed.err).count("4 of them repeated") == 1
    assert "Molecules of FH" in printed.out
    assert status(*begin, "--strict") == 2
    assert "--strict: 1 warning(s)" in capsys.readouterr().err


@pytest.mark.slow
def test_the_report_begins_with_the_data_and_the_fit_keeps_its_summary(tmp_path):
    x = np.random.default_rng(0).normal(size=(60, 2))
    np.savetxt(
        tmp_path / "rows.csv", np.column_stack([np.arange(60), x]), "%.5f", ",",
        header="row,x,y", comments="",
    )  # fmt: skip
    out = tmp_path / "run"
    begin = ["fit", tmp_path / "rows.csv", "--group", "trivial", *TINY]
    assert status(*begin, "--out", out) == 0
    report = (out / "report.html").read_text()
    assert report.index("&#39;row&#39; counts, names or dates") < report.index(
        "<figure>"
    )
    assert es.load(out).data_summary.warnings[0].startswith("Column 'row' counts")
