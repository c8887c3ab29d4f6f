"""The outcome of one seed from what a stage measured."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import ArrayLike

from equistein.runs import Outcome


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
