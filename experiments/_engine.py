"""What experiments share: settings, entries, seeds, and running part by part."""

import dataclasses
import functools
import importlib.util
import math
import pathlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

import jax.numpy as jnp
import jax.random as jr
import jaxtyping
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from equistein.runs import FLOOR, Metric, Outcome, ReportText, WARNING
from equistein.samplers import collect_warnings
from experiments._metrics import METRICS

Point: TypeAlias = Float[Array, "*shape"]
Particles: TypeAlias = Float[Array, "particle *shape"]
Starts: TypeAlias = Float[Array, "run particle *shape"]
Scalar: TypeAlias = Float[Array, ""]
Key: TypeAlias = PRNGKeyArray
Keys: TypeAlias = jaxtyping.Key[Array, "*run"]
LogDensity: TypeAlias = Callable[[Point], Scalar]

SEED = "@"
"""Separates a part's name from a seed's number, where each seed is a part."""

EXACT = -1
"""The color of what is exact, such as the floor."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class AbstractConfig:
    """Settings of an experiment: numbers, strings, and tuples of them.

    Numbers are positive. A class names the fields that may be zero as well, those that
    are at most 1 or at least 2, and the words of which others may consist.

    Attributes:
        num_seeds: The number of seeds, counted up from the run's seed.
    """

    num_seeds: int = 5

    or_zero: ClassVar[Sequence[str]] = ()
    fractions: ClassVar[Sequence[str]] = ()
    several: ClassVar[Sequence[str]] = ()
    words: ClassVar[Mapping[str, Collection[str]]] = {}

    def __post_init__(self):
        """Raise `ValueError` for a number that is out of range, or an unknown word."""
        for name, known in self.words.items():
            if not set(getattr(self, name)) <= set(known):
                raise ValueError(
                    f"`{name}` must be of {', '.join(known)}, but got "
                    f"{getattr(self, name)!r}."
                )
        for name in (field.name for field in dataclasses.fields(self)):
            value, fraction = getattr(self, name), name in self.fractions
            zero, several = name in self.or_zero, name in self.several
            least = "at least 2" if several else f"positive{' or zero' if zero else ''}"
            if value == ():
                raise ValueError(f"`{name}` must not be empty.")
            for number in value if isinstance(value, tuple) else (value,):
                if isinstance(number, bool) or not isinstance(number, int | float):
                    continue
                most = number <= 1 if fraction else number < math.inf
                enough = number > several or (zero and number == 0)
                if not (enough and most):
                    raise ValueError(
                        f"`{name}` must be {least} and "
                        f"{'at most 1' if fraction else 'finite'}, but got {value!r}."
                    )


@dataclasses.dataclass(frozen=True)
class Trial:
    """One seed of one entry: what a stage is given.

    Attributes:
        name: The entry's name and the index, such as `plain@0`.
        index: The place among the entry's seeds, from 0.
        seed: The number that all randomness comes from.
        folder: Where training keeps its state, in the file `NAME.training`, or None.
    """

    name: str
    index: int
    seed: int
    folder: pathlib.Path | None = None

    def key(self, purpose: int) -> Key:
        """Return the key for one purpose."""
        return jr.fold_in(jr.key(self.seed), purpose)

    def checkpoint(self) -> pathlib.Path | None:
        """Return the file in which a training keeps its state."""
        return self.folder and self.folder / f"{self.name}.training"


Stage = Callable[[Trial], Outcome]
"""Computes the outcome of one seed."""
Stages = Callable[[Sequence[Trial]], Sequence[Outcome]]
"""Computes the outcomes of all seeds together."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """A sampler or model of an experiment; `exact` is the floor.

    Attributes:
        name: Its name in results and in the report's table.
        stage: What computes its outcome.
        note: A sentence that its numbers need.
        label: Its name in figures; by default its name.
        color: The number of its color in figures, filled in there.
        num_seeds: The number of its seeds, if not that of the configuration.
        trains: Whether it is trained, or takes as long: then each seed is a part of
            its own, which can be resumed.
        together: Whether the stage takes the trials of all seeds at once.
    """

    name: str
    stage: Stage | Stages
    note: str = ""
    _: dataclasses.KW_ONLY
    label: str = ""
    color: int = EXACT
    num_seeds: int | None = None
    trains: bool = False
    together: bool = False


def sampled(
    start: Callable[[Key], Particles], sample: Callable[[Key, Particles], Outcome]
) -> Stage:
    """Return what samples from a random start, one seed after another."""
    return lambda trial: sample(trial.key(1), start(trial.key(0)))


def side_by_side(
    start: Callable[[Key], Particles],
    sample: Callable[[Keys, Starts], Sequence[Outcome]],
) -> Stages:
    """Return what does the same for all seeds at once."""

    def stages(trials: Sequence[Trial]) -> Sequence[Outcome]:
        starts = jnp.stack([start(trial.key(0)) for trial in trials])
        return sample(jnp.stack([trial.key(1) for trial in trials]), starts)

    return stages


Shown = Sequence[tuple[Entry, Outcome]]
"""The entries that have an outcome, with it; their labels and colors are filled in."""


@dataclasses.dataclass(frozen=True)
class Figure:
    """A figure of an experiment.

    Attributes:
        name: The name of its files.
        draw: From the configuration and the outcomes the figure, or None where there is
            nothing to show.
        caption: What it shows.
    """

    name: str
    draw: Callable[[Any, Shown], Any | None]
    caption: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Experiment:
    """An experiment: settings, entries, figures and text.

    Attributes:
        name: Its name on the command line.
        figure: Where it is in the paper.
        summary: What it shows, in one line.
        presets: The configurations `smoke`, `quick` and `paper`.
        choice: A setting, such as `system`, by whose value presets differ: each is
            then a configuration for each of its values.
        entries: From a configuration, the samplers or models in the order of figures.
        figures: The figures.
        headlines: The three to five metrics that the report begins with.
        metrics: What each metric is.
        compare: From the configuration and the outcomes, further metrics by the name
            of the entry, each with one value a seed, that need several entries.
        needs: The packages without which it cannot run, and the extras they come with.
        check: From a configuration, raise `ValueError` for what else the stages need
            and do not have, before anything is written.
    """

    name: str
    figure: str
    summary: str
    presets: Mapping[str, Any]
    entries: Callable[[Any], Sequence[Entry]]
    figures: Sequence[Figure]
    headlines: Sequence[str] = ()
    metrics: Mapping[str, Metric] = dataclasses.field(default_factory=lambda: METRICS)
    choice: str = ""
    compare: Callable[[Any, dict[str, Outcome]], Mapping[str, dict]] = lambda *_: {}
    needs: Mapping[str, str] = dataclasses.field(default_factory=dict)
    check: Callable[[Any], object] = lambda config: None

    def stages(
        self, config: Any, seed: int, folder: pathlib.Path | None = None
    ) -> dict[str, Callable[[], Outcome]]:
        """Return the parts of a run, by name: an entry, or a seed of one that trains.

        Raises:
            ValueError: If the configuration, or something that it needs, is invalid.
        """
        for package, extra in self.needs.items():
            if not has_package(package):
                raise ValueError(
                    f"{self.name} needs {package}: pip install 'equistein[{extra}]'."
                )
        self.check(config)
        stages = {}
        for entry in self.entries(config):
            trials = [
                Trial(f"{entry.name}{SEED}{index}", index, seed + index, folder)
                for index in range(entry.num_seeds or config.num_seeds)
            ]
            parts = {trial.name: [trial] for trial in trials}
            for name, part in (parts if entry.trains else {entry.name: trials}).items():
                stages[name] = functools.partial(_outcome_of, entry, part)
        return stages

    def draw(self, config: Any, outcomes: Mapping[str, Outcome]) -> dict[str, Any]:
        """Return the figures of the outcomes, whose seeds are joined, by name."""
        entries = self.entries(config)
        names = [entry.name for entry in entries if entry.name != FLOOR]
        colors = {name: place for place, name in enumerate(names)} | {FLOOR: EXACT}
        shown = [
            (
                dataclasses.replace(
                    entry, label=entry.label or entry.name, color=colors[entry.name]
                ),
                outcomes[entry.name],
            )
            for entry in entries
            if entry.name in outcomes
        ]
        drawn = {figure.name: figure.draw(config, shown) for figure in self.figures}
        return {name: figure for name, figure in drawn.items() if figure is not None}

    def text(self, config: Any, preset: str) -> ReportText:
        """Return the text of the report of a run."""
        figure = self.figure[0].upper() + self.figure[1:]
        entries = {entry.name: entry for entry in self.entries(config)}
        floor = entries.pop(FLOOR, None)
        about: dict[str, Any] = {}
        if floor is not None:
            about["floor"] = floor.label or "exact samples"
            about |= {"floor_note": floor.note} if floor.note else {}
        return ReportText(
            title=self.name,
            lead=f"{self.summary[0].upper()}{self.summary[1:]}. {figure} of Jaini, "
            f"Holdijk and Welling (2021); preset {preset}.",
            notes={name: entry.note for name, entry in entries.items() if entry.note},
            labels={name: e.label for name, e in entries.items() if e.label},
            captions={figure.name: figure.caption for figure in self.figures},
            headlines=self.headlines,
            **about,
        )


def has_package(name: str) -> bool:
    """Return whether a package is installed, without importing it."""
    return importlib.util.find_spec(name) is not None


def _outcome_of(entry: Entry, trials: Sequence[Trial]) -> Outcome:
    stage: Any = entry.stage
    with collect_warnings() as texts:
        found = stage(trials) if entry.together else [stage(trial) for trial in trials]
    names = [trial.name for trial in trials]
    (outcome,) = join_seeds(dict(zip(names, found, strict=True))).values()
    events = [{"event": WARNING, "text": text} for text in texts]
    return dataclasses.replace(outcome, events=[*outcome.events, *events])


def join_seeds(outcomes: Mapping[str, Outcome]) -> dict[str, Outcome]:
    """Return the outcomes with the seeds of each entry joined into one."""
    groups: dict[str, list[Outcome]] = {}
    for name, outcome in outcomes.items():
        groups.setdefault(name.partition(SEED)[0], []).append(outcome)
    return {
        name: _concatenate(parts) if len(parts) > 1 else parts[0]
        for name, parts in groups.items()
    }


def _concatenate(parts: list[Outcome]) -> Outcome:
    fields: dict[str, Any] = {}
    for field in ("metrics", "history", "arrays"):
        first, *others = (getattr(part, field) for part in parts)
        fields[field] = {  # expensive arrays may be of the first seed alone
            name: np.concatenate([value, *(d[name] for d in others if name in d)])
            for name, value in first.items()
        }
    numbered = enumerate(part.events for part in parts)
    events = [{"seed_index": i} | event for i, events in numbered for event in events]
    samples = np.concatenate([part.samples for part in parts])
    return Outcome(samples=samples, events=events, **fields)
