"""What an experiment is."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from equistein.runs import Outcome

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
