"""`equistein resume`: an interrupted fit or sweep, from where it stopped."""

import dataclasses
import pathlib
from typing import Annotated

import tyro

from equistein.cli._distributed import Distributed
from equistein.cli._fit import resume_fit
from equistein.cli._sweep import run_members
from equistein.runs import check_settings, RunFolder, UserError


@dataclasses.dataclass(frozen=True)
class Resume:
    """Continue an interrupted fit or sweep, to the same numbers.

    Attributes:
        run: The run folder.
        distributed: Which other processes share the work of a fit.
    """

    run: Annotated[pathlib.Path, tyro.conf.Positional]
    distributed: Annotated[Distributed, tyro.conf.arg(name="")] = Distributed()

    def execute(self) -> int:
        """Do what the folder's config.json describes and is not done yet."""
        folder = RunFolder.open(self.run)
        command = folder.read_json("config.json").get("command")
        if command == "experiment":
            raise UserError(
                f"{folder.path} is an experiment, which continues by the command that "
                f"began it, with --out {folder.path}."
            )
        if command not in ("fit", "sweep"):
            raise UserError(f"{folder.path} holds a {command!r}: it cannot be resumed.")
        check_settings(folder)
        if command == "sweep":
            return run_members(folder)
        return resume_fit(folder, self.distributed)
