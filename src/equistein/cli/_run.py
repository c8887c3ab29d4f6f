"""`equistein run`: an experiment, part by part, into a run folder."""

import dataclasses
import datetime
import pathlib
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, Union

import jax
import tyro

from equistein._limits import LimitError
from equistein.cli._attempt import attempt
from equistein.cli._estimate import in_sentences
from equistein.cli._given import given
from equistein.cli._hosts import drop, Hosts, own_path, reopened, together
from equistein.cli._output import answer, say, warn
from equistein.experiments import (
    create_folder,
    expected_time,
    Experiment,
    EXPERIMENTS,
    perform,
)
from equistein.runs import config_from_json, load_outcome, RunFolder, UserError
from equistein.samplers import NonFiniteError

_PRESET = "quick"


def run_arguments(arguments: Sequence[str]) -> Any:
    """Return the class of the arguments of `equistein run`: one of the experiments.

    The preset that is asked for sets their defaults.
    """
    preset = given(arguments, "preset")
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

        def expected_seconds(self) -> float | None:
            return self.experiment.expected_seconds()  # type: ignore

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
            dry_run: Check everything, tell the parts and an estimate of their time, but
                run and write nothing.
            hosts: Which other processes share the parts of the run.
        """

        config: Annotated[type(settings), tyro.conf.arg(name="")] = settings  # type: ignore
        preset: Literal[tuple(presets)] = size  # type: ignore
        seed: int = 0
        out: pathlib.Path | None = None
        dry_run: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
        hosts: Annotated[Hosts, tyro.conf.arg(name="")] = Hosts()

        def execute(self) -> int:
            if self.dry_run:
                return tell_parts(
                    experiment, self.config, self.preset, self.seed, self.out
                )
            return start(experiment, self.config, self.preset, self.seed, self.out)

        def expected_seconds(self) -> float | None:
            found = expected_time(experiment, self.config, self.preset)
            return found and found.seconds

    about = f"{experiment.summary} ({experiment.figure})"
    return Annotated[Run, tyro.conf.subcommand(experiment.name, description=about)]


def tell_parts(
    experiment: Experiment,
    config: Any,
    preset: str,
    seed: int,
    out: pathlib.Path | None,
) -> int:
    """Check everything, and print what a run would make."""
    try:
        parts = check(experiment, config, seed)
    except ValueError as error:
        raise UserError(str(error)) from None
    if out is not None:
        RunFolder.create(out).remove_if_empty()
    expected = expected_time(experiment, config, preset)
    answer(
        f"{experiment.name}, preset {preset}, would make {len(parts)} parts: "
        f"{', '.join(parts)}. {in_sentences(expected)} Nothing is written; "
        "--preset smoke tries all in seconds.",
        experiment=experiment.name, preset=preset, parts=parts,
        seconds=expected and expected.seconds,
    )  # fmt: skip
    return 0


def start(
    experiment: Experiment,
    config: Any,
    preset: str,
    seed: int,
    out: pathlib.Path | None,
) -> int:
    """Check everything, make the run folder, and run."""
    path = own_path(out or default_folder(experiment.name))

    def created() -> RunFolder:
        try:
            check(experiment, config, seed)
        except LimitError as error:
            raise UserError(str(error)) from None
        return create_folder(experiment, config, seed, path, preset)

    folder = together(created)
    return execute(experiment, config, seed, folder)


def read_run(described: Mapping[str, Any]) -> tuple[Experiment, Any, int]:
    """Return the experiment, the settings and the seed that config.json describes.

    Raises:
        ValueError: If they are not what they should be.
    """
    name, seed = described.get("experiment"), described.get("seed", 0)
    if not isinstance(name, str) or name not in EXPERIMENTS:
        raise ValueError(f"there is no experiment {name!r}")
    experiment = EXPERIMENTS[name]
    like = next(iter(experiment.presets.values()))
    config = config_from_json(like, described.get("config"))
    check(experiment, config, seed)
    return experiment, config, seed


def check(experiment: Experiment, config: Any, seed: Any) -> list[str]:
    """Return the parts of a run; raise `ValueError` unless it can begin."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise ValueError(
            f"`seed` must be an integer from 0 to 2^63 - 1, but got {seed!r}."
        )
    return list(experiment.stages(config, seed))


def execute(experiment: Experiment, config: Any, seed: int, folder: RunFolder) -> int:
    """Run every part that is not yet done, then write results and report."""
    return attempt(folder, lambda: _perform(experiment, config, seed, folder))


def resume_run(
    experiment: Experiment, config: Any, seed: int, folder: RunFolder
) -> int:
    """Go on with an interrupted run, to the same numbers."""
    if is_finished(folder, experiment.stages(config, seed)):
        answer_run(folder, None)
        return 0
    return execute(experiment, config, seed, reopened(folder))


def is_finished(folder: RunFolder, parts: Iterable[str]) -> bool:
    """Return whether a run has made all of its parts, and has its report."""
    written = ("metrics.json", "report.html")
    return all((folder.path / name).is_file() for name in written) and all(
        load_outcome(folder, name) is not None for name in parts
    )


def _perform(experiment: Experiment, config: Any, seed: int, folder: RunFolder) -> None:
    began = time.perf_counter()
    preset = str(folder.read_config().get("preset"))
    try:
        perform(experiment, config, seed, folder, preset=preset, tell=say, warn=warn)
    except NonFiniteError as error:
        failed = folder.path / "failed.npz"
        error.add_note(f"The last finite particles are in {failed}.")
        raise
    finally:
        drop(folder)
    if jax.process_index() == 0:
        answer_run(folder, time.perf_counter() - began)


def answer_run(folder: RunFolder, seconds: float | None) -> None:
    """Print where the report of a finished run is."""
    told = "Finished before" if seconds is None else f"Finished in {seconds:.0f} s"
    report = folder.path / "report.html"
    answer(
        f"{told}. Report: {report}",
        folder=folder.path, report=report, seconds=seconds,
        metrics=folder.read_json("metrics.json"),
    )  # fmt: skip


def default_folder(name: str) -> pathlib.Path:
    """Return a folder under runs/ that no other run has."""
    now = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    return pathlib.Path("runs") / f"{name}-{now}"
