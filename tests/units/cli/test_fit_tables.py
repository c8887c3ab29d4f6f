import json

import numpy as np
import pytest
from command_line import status, TINY

from equistein.data import read_table


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """The folder of a fit of a table of two columns and two classes."""
    folder = tmp_path_factory.mktemp("table")
    rng = np.random.default_rng(0)
    rows = ["x [nm],kind,y [nm]"]
    for index in range(40):
        x, y = rng.normal(size=2)
        rows.append(f"{x},{('cat', 'dog')[index % 2]},{y}")
    (folder / "table.csv").write_text("\n".join(rows) + "\n")
    arguments = ["fit", folder / "table.csv", "--group", "cyclic:4", *TINY]
    out = folder / "run"
    assert status(*arguments, "--class-column", "kind", "--out", out) == 0
    return out


@pytest.mark.slow
def test_small_data_have_smaller_batches_unless_one_is_asked_for(
    fitted, tmp_path, capsys
):
    table = fitted.parent / "table.csv"
    common = ["fit", table, "--group", "cyclic:4", "--dry-run"]
    common += ["--class-column", "kind"]
    assert status(*common, "--widths", "4", "--num-epochs", "1", "--json") == 0
    assert json.loads(capsys.readouterr().out)["num_points"] == 40
    assert status(*common, "--batch-size", "64") == 2
    assert "a batch of 64" in capsys.readouterr().err


@pytest.mark.slow
def test_a_report_names_columns_units_and_classes(fitted):
    report = (fitted / "report.html").read_text()
    assert "Columns: x [nm], y [nm]. Classes: cat, dog." in report
    assert (fitted / "figures" / "columns.png").is_file()


@pytest.mark.slow
def test_samples_are_a_table_of_the_same_columns(fitted, tmp_path, capsys):
    new = tmp_path / "new.csv"
    arguments = ["--label", "dog", "--num-samples", 5, "--out", new]
    assert status("sample", fitted, *arguments) == 0
    table = read_table(new, class_column="kind")
    assert table.columns == ("x [nm]", "y [nm]")
    assert table.classes == ("dog",)
    assert table.points.shape == (5, 2)
    other = tmp_path / "other.csv"
    assert status("sample", fitted, "--label", "cow", "--out", other) == 2
    assert "cat, dog" in capsys.readouterr().err


def test_columns_are_of_tables(tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.ones((40, 2)))
    arguments = ["--group", "trivial", "--columns", "a", "--out", tmp_path / "out"]
    assert status("fit", tmp_path / "x.npy", *arguments) == 2
    assert "--columns" in capsys.readouterr().err
