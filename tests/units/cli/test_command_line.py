import importlib.metadata
import json
import os
import subprocess
import sys

import jax
import pytest
from command_line import status

from equistein.cli._given import given
from equistein.cli._parse import COMMANDS
from equistein.experiments import EXPERIMENTS

PROGRAM = "import sys; from equistein.cli import main; sys.exit(main())"


def test_list_names_every_experiment(capsys):
    assert status("list") == 0
    printed = capsys.readouterr().out
    assert all(f"{name} " in printed for name in EXPERIMENTS)


def test_help_and_no_command_explain(capsys):
    for arguments in ([], ["--help"]):
        assert status(*arguments) == 0
        printed = capsys.readouterr().out
        assert all(command in printed for command in COMMANDS)
    assert status("run") == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in EXPERIMENTS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_help_of_its_own_which_the_first_one_quotes(
    command, capsys
):
    assert status(command, "--help") == 0
    printed = capsys.readouterr().out
    assert f"usage: equistein {command}" in printed
    assert "type:" not in printed
    assert COMMANDS[command].about in printed


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["fit", "--help"],
        ["run", "two-circles", "--help"],
        ["run", "two-circles", "--num-wheels", "3"],
        ["run", "two-circles", "--num-steps", "many"],
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
heavy = {{"jax", "equinox", "matplotlib", "equistein.experiments"}} & set(sys.modules)
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
    assert "pip install 'equistein[molecules]'  (no rdkit)" in printed
    assert f"{tmp_path}, 1 MiB" in printed
    assert "nowhere  (no folder)" in printed
    assert status("doctor", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["versions"]["jax"] == jax.__version__
    assert told["extras"]["molecules"]["rdkit"] is None


@pytest.mark.slow
def test_quiet_prints_the_answer_alone_and_json_one_object(tmp_path, capsys):
    tiny = "run two-circles --preset smoke --num-seeds 1 --num-particles 6".split()
    assert status(*tiny, "--num-steps", 2, "--out", tmp_path / "a", "--quiet") == 0
    caught = capsys.readouterr()
    (line,) = caught.out.splitlines()
    assert line.endswith(str(tmp_path / "a" / "report.html"))
    assert caught.err == ""
    assert status("--json", "resume", tmp_path / "a") == 0
    caught = capsys.readouterr()
    told = json.loads(caught.out)
    assert told["status"] == 0
    assert told["folder"] == str(tmp_path / "a")
    assert told["metrics"] == json.loads((tmp_path / "a/metrics.json").read_text())
    assert told["seconds"] is None


def test_json_tells_of_a_failure_too(capsys):
    assert status("--json", "resume", "nowhere") == 2
    caught = capsys.readouterr()
    assert json.loads(caught.out)["status"] == 2
    assert "not a run folder" in json.loads(caught.out)["error"]


def test_an_experiment_explains_its_settings_and_the_preset_s_defaults(capsys):
    for preset, config in EXPERIMENTS["two-circles"].presets.items():
        assert status("run", "two-circles", f"--preset={preset}", "--help") == 0
        printed = " ".join(capsys.readouterr().out.split())
        assert "--num-particles" in printed
        assert f"(default: {config.num_steps})" in printed.replace(" │ │ ", " ")


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_shell_completes_commands_experiments_and_settings(shell, capsys):
    assert status("--completion", shell) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in (*COMMANDS, *EXPERIMENTS))
    assert "--num-particles" in printed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "two-circels"], "Did you mean two-circles"),
        (["run", "two-circles", "--preset", "slow"], "'paper'"),
        (["run", "two-circles", "--num-wheels", "3"], "num-wheels"),
        (["run", "two-circles", "--num-steps", "-3"], "num_steps"),
        (["run", "two-circles", "--num-steps", "many"], "num-steps"),
        (["run", "two-circles", "--bandwidth", "0"], "bandwidth"),
        (["run", "two-circles", "--seed", "-1"], "seed"),
        (["walk"], "There is no command"),
        (["bench"], "There is no command"),
        (["reprot"], "Did you mean report"),
        (["resume", "nowhere"], "not a run folder"),
        (["resume"], "PATH"),
        (["report", "nowhere"], "not a run folder"),
        (["report"], "RUN_DIR"),
        (["sample", "nowhere", "--out", "new.npy"], "not a run folder"),
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
@pytest.mark.parametrize("arguments", [["list"], ["run", "--help"]])
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


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ([], None),
        (["--preset", "smoke"], "smoke"),
        (["--preset=smoke", "--seed", "1"], "smoke"),
        (["--preset", "smoke", "--preset", "paper"], "paper"),
        (["--preset"], None),
        (["--presets", "smoke"], None),
    ],
)
def test_an_option_is_found_before_parsing(arguments, value):
    assert given(arguments, "preset") == value


def test_a_dry_run_tells_the_parts_and_writes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert status("run", "two-circles", "--preset", "smoke", "--dry-run", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert {"vanilla", "equivariant"} <= set(told["parts"])
    assert "seconds" in told  # None where nobody has measured them
    assert status("run", "c4-gaussians", "--step-size", "1", "--dry-run") == 0
    text = capsys.readouterr().out
    assert "processor seconds measured of preset quick elsewhere" in text
    assert "but not by step_size." in text
    assert status("run", "two-circles", "--out", "new", "--dry-run") == 0
    (tmp_path / "mine").write_text("here")
    assert status("run", "two-circles", "--out", tmp_path, "--dry-run") == 2
    assert "not empty" in capsys.readouterr().err
    (tmp_path / "mine").unlink()
    assert status("run", "two-circles", "--num-steps", "0", "--dry-run") == 2
    assert "num_steps" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
