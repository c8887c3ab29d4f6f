import importlib.metadata
import json
import os
import subprocess
import sys
import warnings

import jax
import pytest
from command_line import status

from equistein.cli._main import COMMANDS
from equistein.cli._output import print_sampling_warnings, set_output
from equistein.samplers import SamplingWarning

PROGRAM = "import sys; from equistein.cli import main; sys.exit(main())"


def test_help_and_no_command_explain(capsys):
    for arguments in ([], ["--help"]):
        assert status(*arguments) == 0
        printed = capsys.readouterr().out
        assert all(command in printed for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_help_of_its_own_which_the_first_one_quotes(
    command, capsys
):
    assert status(command, "--help") == 0
    printed = capsys.readouterr().out
    assert f"usage: equistein {command}" in printed
    assert "type:" not in printed
    assert COMMANDS[command][1] in " ".join(printed.split()).replace(" │ │ ", " ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "--help"],
        ["fit", "x.npy", "--num-wheels", "3"],
        ["fit", "x.npy", "--num-epochs", "many"],
    ],
)
def test_boxes_fit_a_terminal_of_40_columns(arguments, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    status(*arguments)
    caught = capsys.readouterr()
    lines = (caught.out + caught.err).splitlines()
    boxes = [line for line in lines if line[:1] in tuple(" │╭╰")]  # others may wrap
    assert len(boxes) > 3
    assert [line for line in boxes if len(line) > 40] == []


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["walk"]])
def test_what_needs_no_command_imports_none(arguments):
    program = f"""
import sys
from equistein.cli import main
main({arguments})
heavy = {{"jax", "equinox", "matplotlib", "equistein.runs"}} & set(sys.modules)
assert not heavy, heavy
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


def test_the_version_is_the_package_s(capsys):
    assert status("--version") == 0
    version = importlib.metadata.version("equistein")
    assert capsys.readouterr().out == f"equistein {version}\n"
    assert status("--version", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"status": 0, "version": version}


def test_doctor_tells_what_is_missing_and_how_to_get_it(capsys, tmp_path, monkeypatch):
    found = importlib.metadata.version

    def without_rdkit(name):
        if name == "rdkit":
            raise importlib.metadata.PackageNotFoundError(name)
        return found(name)

    monkeypatch.setattr(importlib.metadata, "version", without_rdkit)
    monkeypatch.setenv("EQUISTEIN_CACHE", str(tmp_path))
    monkeypatch.setenv("EQUISTEIN_DATA", str(tmp_path / "nowhere"))
    (tmp_path / "kept").write_bytes(bytes(2**20))
    assert status("doctor") == 0
    printed = capsys.readouterr().out
    for said in ("equistein[molecules]", f"{tmp_path}, 1 MiB", "(no folder)"):
        assert said in printed
    assert status("doctor", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["versions"]["jax"] == jax.__version__
    assert told["extras"]["molecules"]["rdkit"] is None


def test_json_tells_of_a_failure_too(capsys):
    assert status("--json", "resume", "nowhere") == 2
    told = json.loads(capsys.readouterr().out)
    assert told["status"] == 2
    assert "not a run folder" in told["error"]


def test_the_warning_of_a_sampler_is_printed_once_and_others_pass(capsys):
    set_output(quiet=True, json=False)
    with print_sampling_warnings():
        for _ in range(2):
            warnings.warn("MALA: it stood still.", SamplingWarning, stacklevel=1)
        with pytest.raises(UserWarning, match="another"):  # an error in tests
            warnings.warn("another", stacklevel=1)
    said = "equistein: warning: MALA: it stood still.\n"
    assert capsys.readouterr() == ("", said)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["walk"], "There is no command"),
        (["reprot"], "Did you mean report"),
        (["resume", "nowhere"], "not a run folder"),
        (["resume"], "PATH"),
        (["report"], "RUN_DIR"),
        (["sample", "pretrained:benzene", "--out", "new.xyz"], "only c5h8o"),
        (["fit", "nowhere.npy", "--group", "cyclic:4"], "no file"),
        (["fit", "nowhere.npy"], "--group"),
    ],
)
def test_a_mistake_exits_with_2_and_writes_nothing(
    arguments, said, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert status(*arguments) == 2
    caught = capsys.readouterr()
    assert said in caught.err + caught.out
    assert "Traceback" not in caught.err
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["--help"], ["fit", "--help"]])
def test_a_reader_that_goes_away_is_no_error_to_speak_of(arguments):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        stdout=writer, stderr=subprocess.PIPE, text=True, timeout=120,
    )  # fmt: skip
    os.close(writer)
    assert done.stderr == ""
    assert done.returncode == 141
