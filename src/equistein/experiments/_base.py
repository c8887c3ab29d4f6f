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

Stage = Callable[[], Outcome]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Experiment:
    """An experiment of the paper: configurations, stages, figures, and words.

    Attributes:
        name: What the command line calls it.
        figure: Where it is in the paper.
        summary: What it shows, one line.
        presets: The configurations `smoke`, `quick` and `paper`.
        stages: From a configuration and a seed, what makes the outcome of each sampler
            or model, by name; `exact` makes the floor.
        draw: From the configuration and the outcomes, matplotlib figures by name.
        notes: For a sampler or model, a sentence that its numbers need.
        captions: For a figure, what it shows.
    """

    name: str
    figure: str
    summary: str
    presets: Mapping[str, Any]
    stages: Callable[[Any, int], Mapping[str, Stage]]
    draw: Callable[[Any, Mapping[str, Outcome]], Mapping[str, Any]]
    notes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    captions: Mapping[str, str] = dataclasses.field(default_factory=dict)


def check_config(config: Any) -> None:
    """Raise unless every number of a configuration is positive and finite.

    Raises:
        ValueError: Naming the field, what was expected and what came.
    """
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        for number in value if isinstance(value, tuple) else (value,):
            good = isinstance(number, int | float) and 0 < number < float("inf")
            if not good:
                raise ValueError(
                    f"`{field.name}` must be positive and finite, but got {value!r}."
                )
