"""What an experiment is: entries to compare, each with its stage, and figures."""

import dataclasses
import functools
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.random as jr

from equistein._types import Key
from equistein.experiments.engine._checks import check_size
from equistein.experiments.engine._figures import AbstractFigure
from equistein.runs import (
    config_to_json,
    flags,
    FLOOR,
    joined,
    Outcome,
    SEED,
    WARNING,
    Words,
)
from equistein.samplers import collect_warnings


@dataclasses.dataclass(frozen=True)
class Trial:
    """One seed of one entry: what a stage is given.

    Attributes:
        name: The entry's name and the index, such as `plain@0`.
        index: The place among the entry's seeds, from 0.
        seed: The number that all randomness comes from.
        folder: Where training keeps its state, in files `NAME*.eqx`; None for nowhere.
    """

    name: str
    index: int
    seed: int
    folder: pathlib.Path | None = None

    def key(self, purpose: int) -> Key:
        """Return the key of one purpose."""
        return jr.fold_in(jr.key(self.seed), purpose)

    def checkpoint(self, part: str = "") -> pathlib.Path | None:
        """Return the file in which a training, or a part of it, keeps its state."""
        return self.folder and self.folder / f"{self.name}{part}.eqx"


EXACT = -1
"""The number of the color of what is exact, as the floor is."""

Stage = Callable[[Trial], Outcome]
"""What makes the outcome of one seed."""
Stages = Callable[[Sequence[Trial]], Sequence[Outcome]]
"""What makes the outcomes of all seeds, side by side."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """A sampler or model of an experiment; `exact` is the floor to compare with.

    Attributes:
        name: What results and the report's table call it.
        stage: What makes its outcome, seed by seed. What all seeds share, such as a
            compiled sampler, is made before.
        note: A sentence that its numbers need.
        label: What figures call it; by default its name.
        color: The number of its color in figures; by default its place.
        num_seeds: The number of its seeds, where it is not that of the configuration.
        trains: Whether it is trained, or takes as long: then each seed is a part of the
            run of its own, which can be resumed.
        together: Whether the stage takes the trials of all seeds at once.
    """

    name: str
    stage: Stage | Stages
    note: str = ""
    _: dataclasses.KW_ONLY
    label: str = ""
    color: int | None = None
    num_seeds: int | None = None
    trains: bool = False
    together: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Experiment:
    """An experiment: configurations, entries, figures, and words.

    Attributes:
        name: What the command line calls it.
        figure: Where it is in the paper.
        summary: What it shows, one line.
        presets: The configurations `smoke`, `quick` and `paper`.
        entries: From a configuration, the samplers or models in the order of figures.
        figures: The figures.
        compare: From the configuration and the outcomes, further metrics by the name
            of the model, each with one value a seed, that need several models.
        conclude: From the configuration and the outcomes, what the report says first.
        check: From a configuration, raise `ValueError` or `DataError` for what the
            stages need and do not have, before anything is written.
        one_a_core: Whether the cores of a processor make a part each, at a time. It
            pays where training is of small operations, which cores cannot share well;
            and it does not do where a stage measures time or a part fills the memory.
        headlines: The three to five metrics that the report begins with, or what gives
            them from the configuration.
    """

    name: str
    figure: str
    summary: str
    presets: Mapping[str, Any]
    entries: Callable[[Any], Sequence[Entry]]
    figures: Sequence[AbstractFigure]
    compare: Callable[[Any, dict[str, Outcome]], Mapping[str, dict]] = lambda *_: {}
    conclude: Callable[[Any, dict[str, Outcome]], str] = lambda *_: ""
    check: Callable[[Any], None] = lambda config: None
    one_a_core: bool = False
    headlines: Sequence[str] | Callable[[Any], Sequence[str]] = ()

    def stages(
        self, config: Any, seed: int, folder: pathlib.Path | None = None
    ) -> dict[str, Callable[[], Outcome]]:
        """Return the parts of a run, by name: an entry, or a seed of one that trains.

        Args:
            config: The configuration.
            seed: The first seed.
            folder: Where training keeps its state.

        Raises:
            ValueError: If the configuration, or something that it needs, does not do.
        """
        check_size(config)
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
        """Return the figures of what is there, by name.

        Args:
            config: The configuration.
            outcomes: The outcome of each entry, with its seeds joined.
        """
        listed = self.entries(config)
        names = [entry.name for entry in listed if entry.name != FLOOR]
        colors = {name: place for place, name in enumerate(names)} | {FLOOR: EXACT}
        shown = [
            (
                dataclasses.replace(
                    entry,
                    label=entry.label or entry.name,
                    color=colors[entry.name] if entry.color is None else entry.color,
                ),
                outcomes[entry.name],
            )
            for entry in listed
            if entry.name in outcomes
        ]
        drawn = {figure.name: figure.draw(config, shown) for figure in self.figures}
        return {name: figure for name, figure in drawn.items() if figure is not None}

    def words(self, config: Any, preset: str, seed: int = 0) -> Words:
        """Return what the report of a run says beside numbers and figures.

        Args:
            config: The configuration.
            preset: What it is called; an experiment of one's own, which the command
                line does not know, has none.
            seed: The first seed.
        """
        figure = self.figure[0].upper() + self.figure[1:]
        entries = {entry.name: entry for entry in self.entries(config)}
        floor = entries.pop(FLOOR, None)
        about_floor = {}
        if floor is not None:
            about_floor = {"floor": floor.label or "exact samples"}
            about_floor |= {"floor_note": floor.note} if floor.note else {}
        chosen = self.headlines
        if callable(chosen):
            chosen = chosen(config)
        return Words(
            title=self.name,
            lead=f"{self.summary[0].upper()}{self.summary[1:]}. {figure} of Jaini, "
            f"Holdijk and Welling (2021); preset {preset}.",
            notes={name: entry.note for name, entry in entries.items() if entry.note},
            labels={
                name: entry.label for name, entry in entries.items() if entry.label
            },
            captions={figure.name: figure.about for figure in self.figures},
            headlines=chosen,
            command=self._command(config, seed) if preset else (),
            **about_floor,
        )

    def _command(self, config: Any, seed: int) -> list[str]:
        """Return the words of the command that runs this, by the nearest preset."""
        told = config_to_json(config)
        options = {
            name: flags(told, config_to_json(preset))
            for name, preset in self.presets.items()
        }
        nearest = min(options, key=lambda name: len(options[name]))
        begin = ["equistein", "run", self.name, "--preset", nearest]
        return [*begin, "--seed", str(seed), *options[nearest]]


def _outcome_of(entry: Entry, trials: Sequence[Trial]) -> Outcome:
    stage: Any = entry.stage
    with collect_warnings() as doubts:
        found = stage(trials) if entry.together else [stage(trial) for trial in trials]
    names = [trial.name for trial in trials]
    (outcome,) = joined(dict(zip(names, found, strict=True))).values()
    told = [{"event": WARNING, "text": text} for text in doubts]
    return dataclasses.replace(outcome, events=[*outcome.events, *told])
