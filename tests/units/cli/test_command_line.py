import os
import subprocess
import sys

import pytest
from command_line import status

from equistein.cli._given import given
from equistein.experiments import EXPERIMENTS

COMMANDS = ("list", "run", "fit", "sample", "score", "resume", "report")


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
def test_every_command_has_a_help_of_its_own(command, capsys):
    assert status(command, "--help") == 0
    printed = capsys.readouterr().out
    assert f"usage: equistein {command}" in printed
    assert "type:" not in printed


def test_an_experiment_explains_its_settings_and_the_preset_s_defaults(capsys):
    for preset, config in EXPERIMENTS["two-circles"].presets.items():
        assert status("run", "two-circles", f"--preset={preset}", "--help") == 0
        printed = " ".join(capsys.readouterr().out.split())
        assert "--num-particles" in printed
        assert f"(default: {config.num_steps})" in printed.replace(" │ │ ", " ")


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_shell_completes_commands_experiments_and_settings(shell, capsys):
    assert status("--tyro-print-completion", shell) == 0
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
    program = "import sys; from equistein.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
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
