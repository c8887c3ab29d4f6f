"""`equistein resume`: an interrupted run, from where it stopped."""

import dataclasses
import functools
import pathlib
from typing import Annotated

import tyro

from equistein.cli._fit import read_fit, resume_fit
from equistein.cli._hosts import Hosts
from equistein.cli._run import read_run, resume_run
from equistein.cli._sweep import go_on
from equistein.data import DataError
from equistein.runs import check_settings, RunFolder, UserError


@dataclasses.dataclass(frozen=True)
class Resume:
    """Go on with an interrupted run, fit or sweep, to the same numbers.

    Attributes:
        run: The run folder.
        hosts: Which other processes share the work of a run or a fit.
    """

    run: Annotated[pathlib.Path, tyro.conf.Positional]
    hosts: Annotated[Hosts, tyro.conf.arg(name="")] = Hosts()

    def execute(self) -> int:
        """Do what the folder's config.json says and is not done yet."""
        folder = RunFolder.open(self.run)
        described = folder.read_config()
        command = described.get("command")
        if command == "sweep" and self.hosts.distributed:
            raise UserError(f"{folder.path} holds a sweep: one process resumes it.")
        if command == "sweep":
            check_settings(folder)
            return go_on(folder, described)
        if command not in ("run", "fit"):
            raise UserError(f"{folder.path} holds a {command!r}: it cannot be resumed.")
        try:
            if command == "fit":
                resume = functools.partial(resume_fit, folder, *read_fit(described))
            else:
                experiment, config, seed = read_run(described)
                resume = functools.partial(resume_run, experiment, config, seed, folder)
        except DataError as error:
            raise UserError(str(error)) from None
        except (TypeError, ValueError) as error:
            message = f"{folder.path / 'config.json'} cannot be resumed: {error}"
            raise UserError(message.rstrip(".") + ".") from None
        check_settings(folder)
        return resume()
