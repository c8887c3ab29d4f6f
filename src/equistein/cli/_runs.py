"""`equistein resume` and `equistein report`: run folders that exist."""

import dataclasses
import pathlib
from typing import Annotated, Any

import tyro

from equistein.cli._fit import Distributed, resume_fit
from equistein.cli._output import answer
from equistein.cli._sweep import run_members
from equistein.runs import check_settings, RunFolder, UserError, write_report


@dataclasses.dataclass(frozen=True)
class Resume:
    """Continue an interrupted fit or sweep, to the same numbers.

    Attributes:
        run: The run folder.
        processes: Which other processes share the work of a fit.
    """

    run: Annotated[pathlib.Path, tyro.conf.Positional]
    processes: Annotated[Distributed, tyro.conf.arg(name="")] = Distributed()

    def execute(self) -> int:
        """Do what the folder's config.json describes and is not done yet."""
        folder = RunFolder.open(self.run)
        command = folder.read_json("config.json").get("command")
        if command not in ("fit", "sweep"):
            raise UserError(
                f"{folder.path} holds no fit or sweep but a {command!r}: an experiment "
                f"continues by the command that began it, with --out {folder.path}."
            )
        check_settings(folder)
        if command == "sweep":
            return run_members(folder)
        return resume_fit(folder, self.processes)


@dataclasses.dataclass(frozen=True)
class Report:
    """Write the reports of runs again.

    Attributes:
        runs: Run folders, of fits, sweeps or experiments.
    """

    runs: Annotated[tuple[pathlib.Path, ...], tyro.conf.Positional]

    def execute(self) -> int:
        """Write the reports; nothing is written if a folder is not a run's."""
        if not self.runs:
            raise UserError("Give a run folder: equistein report RUN_DIR [RUN_DIR ...]")
        folders = [RunFolder.open(path) for path in self.runs]
        for folder in folders:
            if not folder.has("metrics.json"):
                raise UserError(f"{folder.path} has no results yet: resume it first.")
        written: dict[str, Any] = {}
        for folder in folders:
            report = write_report(folder)
            metrics = folder.read_json("metrics.json")
            written[str(folder.path)] = {"report": report, "metrics": metrics}
            answer(str(report), runs=written)
        return 0
