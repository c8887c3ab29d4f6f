"""`equistein run`: an experiment, part by part, into a run folder."""

import dataclasses
import datetime
import functools
import pathlib
import time
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Union

import tyro

from equistein.cli._attempt import attempt
from equistein.experiments import create_folder, Experiment, EXPERIMENTS, perform
from equistein.runs import config_from_json, RunFolder, UserError
from equistein.samplers import NonFiniteError

_PRESET = "quick"


def run_arguments(preset: str | None) -> Any:
    """Return the class of the arguments of `equistein run`: one of the experiments.

    The preset that is asked for sets their defaults.
    """
    choices = (_choice(experiment, preset) for experiment in EXPERIMENTS.values())
    chosen = Union[tuple(choices)]  # type: ignore  # noqa: UP007

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Run:
        """Run an experiment; `equistein run NAME --help` lists its settings.

        Attributes:
            experiment: Which one.
        """

        experiment: Annotated[chosen, tyro.conf.arg(name="")]  # type: ignore

        def execute(self) -> int:
            return self.experiment.execute()  # type: ignore

    return Run


def _choice(experiment: Experiment, preset: str | None) -> Any:
    """Return the subcommand of an experiment, with the settings of its preset."""
    presets = experiment.presets
    size = preset if preset is not None and preset in presets else _PRESET
    settings = presets[size]

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Run:
        """An experiment with its settings.

        Attributes:
            config: The settings.
            preset: The size of the run, which sets the defaults of all other settings.
            seed: The first seed.
            out: The run folder, new or empty; by default one under runs.
        """

        config: Annotated[type(settings), tyro.conf.arg(name="")] = settings  # type: ignore
        preset: Literal[tuple(presets)] = size  # type: ignore
        seed: int = 0
        out: pathlib.Path | None = None

        def execute(self) -> int:
            return start(experiment, self.config, self.preset, self.seed, self.out)

    about = f"{experiment.summary} ({experiment.figure})"
    return Annotated[Run, tyro.conf.subcommand(experiment.name, description=about)]


def start(
    experiment: Experiment,
    config: Any,
    preset: str,
    seed: int,
    out: pathlib.Path | None,
) -> int:
    """Check everything, make the run folder, and run."""
    path = out or default_folder(experiment.name)
    try:
        check(experiment, config, seed)
        folder = create_folder(experiment, config, seed, path, preset)
    except ValueError as error:
        raise UserError(str(error)) from None
    return execute(experiment, config, seed, folder)


def read_run(described: Mapping[str, Any]) -> tuple[Experiment, Any, int]:
    """Return the experiment, the settings and the seed that config.json describes.

    Raises:
        ValueError: If they are not what they should be.
    """
    name, seed = described.get("experiment"), described.get("seed", 0)
    if name not in EXPERIMENTS:
        raise ValueError(f"there is no experiment {name!r}")
    experiment = EXPERIMENTS[name]
    like = next(iter(experiment.presets.values()))
    config = config_from_json(like, described.get("config"))
    check(experiment, config, seed)
    return experiment, config, seed


def check(experiment: Experiment, config: Any, seed: Any) -> None:
    """Raise `ValueError` unless a run can begin, before it writes anything."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise ValueError(
            f"`seed` must be an integer from 0 to 2^63 - 1, but got {seed!r}."
        )
    experiment.check(config)
    experiment.stages(config, seed)


def execute(experiment: Experiment, config: Any, seed: int, folder: RunFolder) -> int:
    """Run every part that is not yet done, then write results and report."""
    return attempt(folder, lambda: _perform(experiment, config, seed, folder))


def _perform(experiment: Experiment, config: Any, seed: int, folder: RunFolder) -> None:
    began = time.perf_counter()
    preset = str(folder.read_config().get("preset"))
    tell = functools.partial(print, flush=True)
    try:
        perform(experiment, config, seed, folder, preset=preset, tell=tell)
    except NonFiniteError as error:
        failed = folder.path / "failed.npz"
        error.add_note(f"The last finite particles are in {failed}.")
        raise
    report = folder.path / "report.html"
    print(f"Finished in {time.perf_counter() - began:.0f} s. Report: {report}")


def default_folder(name: str) -> pathlib.Path:
    """Return a folder under runs/ that no other run has."""
    now = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    return pathlib.Path("runs") / f"{name}-{now}"
