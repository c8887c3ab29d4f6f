"""The command line: dispatch, and errors without tracebacks."""

import pathlib
import sys
from collections.abc import Sequence

from equistein.cli._bench import bench
from equistein.cli._fit import fit_data, resume_fit
from equistein.cli._report import report
from equistein.cli._run import (
    INTERRUPTED,
    list_experiments,
    resume_experiment,
    run_experiment,
)
from equistein.cli._sample import sample_run
from equistein.runs import RunFolder, UserError

_HELP = """\
equistein: sample and learn probability densities that have a symmetry

usage:
  equistein list                                the experiments, with the paper's figure
  equistein run NAME [--preset smoke|quick|paper] [--seed N] [--out DIR]
                     [--any.config.field V]     run an experiment
  equistein fit DATA --group GROUP --out DIR    learn an invariant energy from data
  equistein sample RUN_DIR --num-samples N --out FILE
                                                draw from a learned energy
  equistein sample pretrained:c5h8o --num-samples N --out FILE.xyz
                                                draw new isomers of C5H8O
  equistein resume RUN_DIR                      go on with an interrupted run
  equistein report RUN_DIR [RUN_DIR ...]        write the report anew; compare runs
  equistein bench                               time the samplers beside peers

`equistein run NAME --help` and `equistein fit --help` list their settings.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Returns:
        0 when done, 2 for a mistake in the arguments or the input, 130 when stopped
        with Ctrl-C, 1 when the numbers broke down.
    """
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_HELP, end="")
        return 0
    command, rest = arguments[0], arguments[1:]
    try:
        return _dispatch(command, rest)
    except UserError as error:
        print(f"equistein: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"equistein: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nequistein: stopped.", file=sys.stderr)
        return INTERRUPTED


def _dispatch(command: str, arguments: list[str]) -> int:
    if any(argument in ("-h", "--help") for argument in arguments) and command in (
        "list", "resume", "report", "bench",
    ):  # fmt: skip
        print(_HELP, end="")
        return 0
    if command == "list":
        if arguments:
            raise UserError("usage: equistein list")
        return list_experiments()
    if command == "run":
        return run_experiment(arguments)
    if command == "fit":
        return fit_data(arguments)
    if command == "sample":
        return sample_run(arguments)
    if command == "resume":
        return _resume(arguments)
    if command == "report":
        return report(arguments)
    if command == "bench":
        if arguments:
            raise UserError("usage: equistein bench")
        return bench()
    commands = "list, run, fit, sample, resume, report, bench"
    raise UserError(
        f"There is no command {command!r}; the commands are {commands}. "
        "`equistein --help` explains them."
    )


def _resume(arguments: list[str]) -> int:
    if len(arguments) != 1 or arguments[0].startswith("-"):
        raise UserError("usage: equistein resume RUN_DIR")
    folder = RunFolder.open(pathlib.Path(arguments[0]))
    command = folder.read_config().get("command")
    if command == "run":
        return resume_experiment(folder)
    if command == "fit":
        return resume_fit(folder)
    raise UserError(f"{folder.path} holds a {command!r}, which cannot be resumed.")
