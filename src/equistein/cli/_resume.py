"""`equistein resume`: an interrupted run, from where it stopped."""

import dataclasses
import pathlib
from typing import Annotated

import tyro

from equistein.cli._fit import resume_fit
from equistein.cli._run import check, execute
from equistein.data import DataError
from equistein.experiments import EXPERIMENTS
from equistein.runs import config_from_json, RunFolder, UserError


@dataclasses.dataclass(frozen=True)
class Resume:
    """Go on with an interrupted run or fit, to the same numbers.

    Attributes:
        run: The run folder.
    """

    run: Annotated[pathlib.Path, tyro.conf.Positional]

    def execute(self) -> int:
        """Do what the folder's config.json says and is not done yet."""
        folder = RunFolder.open(self.run)
        command = folder.read_config().get("command")
        if command == "run":
            return _resume_experiment(folder)
        if command == "fit":
            return resume_fit(folder)
        raise UserError(f"{folder.path} holds a {command!r}, which cannot be resumed.")


def _resume_experiment(folder: RunFolder) -> int:
    described = folder.read_config()
    name, seed = described.get("experiment"), described.get("seed", 0)
    try:
        if name not in EXPERIMENTS:
            raise ValueError(f"there is no experiment {name!r}")
        experiment = EXPERIMENTS[name]
        like = next(iter(experiment.presets.values()))
        config = config_from_json(like, described.get("config"))
        check(experiment, config, seed)
    except DataError as error:
        raise UserError(str(error)) from None
    except (TypeError, ValueError) as error:
        message = f"{folder.path / 'config.json'} cannot be resumed: {error}"
        raise UserError(message.rstrip(".") + ".") from None
    return execute(experiment, config, seed, folder)
