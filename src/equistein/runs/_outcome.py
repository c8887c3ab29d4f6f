"""What one sampler or model of a run gave."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import ArrayLike

FLOOR = "exact"
"""The stage whose outcome is the floor: exact samples against exact samples."""

WARNING = "warning"
"""The kind of an event that says what an outcome should be doubted for."""

SEED = "@"
"""Parts a stage's name from a seed's number, where each seed is a stage of its own."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one sampler or model of a run gave.

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


def check_outcome(outcome: Outcome) -> None:
    """Raise `ValueError` unless all parts are of the shapes that they should be."""

    def check(name: str, array: np.ndarray, axes: int, kinds: str = "biuf") -> None:
        if array.dtype.kind not in kinds or array.ndim < axes:
            raise ValueError(
                f"`{name}` should hold numbers on at least {axes} axes, but is of "
                f"shape {array.shape} and type {array.dtype}"
            )

    check("samples", outcome.samples, 1)
    for name, values in outcome.metrics.items():
        check(f"metrics:{name}", values, 1)
        if values.ndim > 1 or not values.size:
            raise ValueError(f"`metrics:{name}` should hold a number for each seed")
    for name, column in outcome.history.items():
        check(f"history:{name}", column, 2)
        step = outcome.history.get("step")
        if step is None or column.shape != step.shape:
            raise ValueError(f"`history:{name}` should be of the shape of `step`")
    for name, array in outcome.arrays.items():
        check(f"arrays:{name}", array, 0, "biufU")
    events = outcome.events
    if not isinstance(events, list) or any(not isinstance(e, dict) for e in events):
        raise ValueError("`events` should be a list of objects")


def seed_outcome(
    metrics: Mapping[str, Any],
    samples: ArrayLike,
    *,
    history: Mapping[str, Any] | None = None,
    arrays: Mapping[str, Any] | None = None,
    stacked: Mapping[str, Any] | None = None,
    events: Sequence[dict] = (),
) -> Outcome:
    """Return the outcome of one seed.

    Args:
        metrics: Numbers by name.
        samples: The samples, `(n, *shape)`.
        history: Columns with one entry a record, with `step` among them, or `epoch` in
            its place.
        arrays: What figures need besides, which is concatenated over the seeds.
        stacked: The same, which is stacked over the seeds.
        events: What happened on the way.
    """
    columns = {
        name: np.asarray(values)[None] for name, values in (history or {}).items()
    }
    if "step" not in columns and "epoch" in columns:
        columns["step"] = columns.pop("epoch")
    kept = {name: np.asarray(values) for name, values in (arrays or {}).items()}
    kept |= {name: np.asarray(v)[None] for name, v in (stacked or {}).items()}
    return Outcome(
        metrics={name: np.array([float(value)]) for name, value in metrics.items()},
        samples=np.asarray(samples),
        history=columns,
        arrays=kept,
        events=list(events),
    )


def joined(outcomes: Mapping[str, Outcome]) -> dict[str, Outcome]:
    """Return the outcomes with the seeds of each model joined into one.

    Arrays may be of the first seed alone, where they take long.
    """
    groups: dict[str, list[Outcome]] = {}
    for name, outcome in outcomes.items():
        groups.setdefault(name.partition(SEED)[0], []).append(outcome)
    return {name: _concatenated(parts) for name, parts in groups.items()}


def _concatenated(parts: list[Outcome]) -> Outcome:
    if len(parts) == 1:
        return parts[0]

    def along_seeds(field: str, optional: bool = False) -> dict[str, np.ndarray]:
        dicts = [getattr(part, field) for part in parts]
        return {
            name: np.concatenate([d[name] for d in dicts if name in d or not optional])
            for name in dicts[0]
        }

    return Outcome(
        metrics=along_seeds("metrics"),
        samples=np.concatenate([part.samples for part in parts]),
        history=along_seeds("history"),
        arrays=along_seeds("arrays", optional=True),
        events=[
            {"seed_index": index} | event
            for index, part in enumerate(parts)
            for event in part.events
        ],
    )
