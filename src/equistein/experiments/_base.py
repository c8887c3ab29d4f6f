"""What an experiment is."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax.random as jr

from equistein._types import Key
from equistein.runs import Outcome, Words

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

    def check(self, config: Any) -> None:
        check_config(config)

    def words(self, config: Any, preset: str) -> Words:
        del config
        figure = self.figure[:1].upper() + self.figure[1:]
        return Words(
            title=self.name,
            lead=f"{self.summary}. {figure} of Jaini, Holdijk and Welling (2021); "
            f"preset {preset}.",
            notes=self.notes,
            captions=self.captions,
        )


def seed_keys(seed: int, num_seeds: int, purpose: int) -> list[Key]:
    """Return a key for each of the seeds `seed`, `seed + 1`, ... and one purpose."""
    return [jr.fold_in(jr.key(seed + i), purpose) for i in range(num_seeds)]


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
