"""What an experiment is, and what it leaves."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one sampler or model of an experiment gave.

    Attributes:
        metrics: For each metric its values, one a seed.
        samples: The samples of all seeds together, `(n, *shape)`.
        history: For each quantity its values, `(seed, record)`.
        arrays: What the figures need besides.
        events: What happened on the way, such as roll-backs; each joins the history.
    """

    metrics: dict[str, np.ndarray]
    samples: np.ndarray
    history: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    arrays: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    events: list[dict[str, Any]] = dataclasses.field(default_factory=list)


FLOOR = "exact"
"""The stage whose outcome is the floor: exact samples against exact samples."""

SEED = "@"
"""Parts a stage's name from a seed's number, where each seed is a stage of its own."""

Stage = Callable[[], Outcome]


def _compare_nothing(config: Any, outcomes: Mapping[str, Outcome]) -> dict:
    return {}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Experiment:
    """An experiment of the paper: configurations, stages, figures, and words.

    Attributes:
        name: What the command line calls it.
        figure: Where it is in the paper.
        summary: What it shows, one line.
        presets: The configurations `smoke`, `quick` and `paper`.
        stages: From a configuration and a seed, what makes the outcome of each sampler
            or model, by name; `exact` makes the floor. Names such as `plain@0` and
            `plain@1` are one model's seeds, to be joined in this order.
        trains: Whether the stages train; then `stages` takes a folder besides, where
            training keeps its state in files `NAME*.eqx` of the stage's name.
        compare: From the configuration and the outcomes, further metrics by the name
            of the model, each with one value a seed, that need several models.
        draw: From the configuration and the outcomes, matplotlib figures by name.
        notes: For a sampler or model, a sentence that its numbers need.
        captions: For a figure, what it shows.
    """

    name: str
    figure: str
    summary: str
    presets: Mapping[str, Any]
    stages: Callable[..., Mapping[str, Stage]]
    draw: Callable[[Any, Mapping[str, Outcome]], Mapping[str, Any]]
    compare: Callable[[Any, Mapping[str, Outcome]], Mapping[str, dict]] = (
        _compare_nothing
    )
    trains: bool = False
    notes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    captions: Mapping[str, str] = dataclasses.field(default_factory=dict)


def joined(outcomes: Mapping[str, Outcome]) -> dict[str, Outcome]:
    """Return the outcomes with the seeds of each model joined into one."""
    groups: dict[str, list[Outcome]] = {}
    for name, outcome in outcomes.items():
        groups.setdefault(name.partition(SEED)[0], []).append(outcome)
    return {name: _concatenated(parts) for name, parts in groups.items()}


def _concatenated(parts: list[Outcome]) -> Outcome:
    if len(parts) == 1:
        return parts[0]

    def along_seeds(field: str) -> dict[str, np.ndarray]:
        dicts = [getattr(part, field) for part in parts]
        return {name: np.concatenate([d[name] for d in dicts]) for name in dicts[0]}

    return Outcome(
        metrics=along_seeds("metrics"),
        samples=np.concatenate([part.samples for part in parts]),
        history=along_seeds("history"),
        arrays=along_seeds("arrays"),
        events=[
            {"seed_index": index} | event
            for index, part in enumerate(parts)
            for event in part.events
        ],
    )


def check_config(config: Any) -> None:
    """Raise unless every number of a configuration is positive and finite.

    Settings inside the configuration have checked themselves.

    Raises:
        ValueError: Naming the field, what was expected and what came.
    """
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if dataclasses.is_dataclass(value) or isinstance(value, bool | str):
            continue
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, str):
                continue
            good = isinstance(number, int | float) and 0 < number < float("inf")
            if not good:
                raise ValueError(
                    f"`{field.name}` must be positive and finite, but got {value!r}."
                )
