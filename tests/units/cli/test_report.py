import shutil

from command_line import status


def test_report_compares_runs(tmp_path, whole_fit, capsys):
    runs = [shutil.copytree(whole_fit, tmp_path / name) for name in "ab"]
    for run in runs:
        (run / "report.html").unlink()
    assert status("report", *runs) == 0
    page = tmp_path / "compared.html"
    assert str(page) in capsys.readouterr().out
    assert "a: model" in page.read_text()
    page.write_text("mine")
    assert status("report", *runs) == 2
    assert "compared.html" in capsys.readouterr().err
    assert page.read_text() == "mine"
    reports = [(run / "report.html").read_text() for run in (whole_fit, *runs)]
    assert reports == reports[:1] * 3
