"""What a fit leaves of its epochs and of its failures."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from equistein._limits import check_made

_BYTES = 24  # of a number, with the copy that a checkpoint is written from
_REASONS = ("not finite", "energy limit")


class History:
    """A fit's numbers and events, in arrays of fixed size that a checkpoint holds.

    Args:
        arrays: `rows`, a column of the history each, and `events`, a line each.
    """

    def __init__(self, arrays: dict[str, Any]):
        self.arrays = {
            "rows": {name: np.array(v) for name, v in arrays["rows"].items()},
            "events": np.array(arrays["events"]),
        }

    @classmethod
    def empty(
        cls, num_epochs: int, max_rollbacks: int, columns: Sequence[str]
    ) -> "History":
        """Return the history of a fit that has not begun."""
        needed = _BYTES * num_epochs * len(columns)
        what = f"The history of {num_epochs} epochs"
        check_made(what, needed, "take a smaller `num_epochs`")
        rows = {name: np.full(num_epochs, np.nan) for name in columns}
        events = np.full((max_rollbacks + 1, 5), np.nan)
        return cls({"rows": rows, "events": events})

    def copied(self) -> dict[str, Any]:
        """Return the arrays as they are now."""
        return History(self.arrays).arrays

    @property
    def num_events(self) -> int:
        return int(np.sum(np.isfinite(self.arrays["events"][:, 0])))

    def num_tried(self, epoch: int) -> int:
        """Return how many epochs were computed before one, the failed ones included."""
        lines = self.arrays["events"][: self.num_events]
        return epoch + int(np.sum(lines[:, 0] - lines[:, 3]))

    def add_row(self, epoch: int, row: dict[str, float]) -> None:
        """Keep the numbers of an epoch, counted from 0."""
        for name, value in row.items():
            self.arrays["rows"][name][epoch] = value

    def add_event(
        self, epoch: int, reason: str, largest: float, back_to: int, scale: float
    ) -> None:
        """Keep that an epoch, counted from 1, failed and where the fit went back to."""
        line = (epoch, _REASONS.index(reason), largest, back_to, scale)
        self.arrays["events"][self.num_events] = line
        if self.num_events == len(self.arrays["events"]):
            return  # it gives up
        for column in self.arrays["rows"].values():
            column[back_to:] = np.nan  # these epochs come again

    def columns(self) -> dict[str, np.ndarray]:
        """Return the columns, of the epochs that were done."""
        rows = self.arrays["rows"]
        done = np.isfinite(rows["scale"])
        epochs = 1 + np.flatnonzero(done)
        return {"epoch": epochs} | {n: rows[n][done] for n in sorted(rows)}

    def events(self) -> list[dict[str, Any]]:
        """Return the failures, one object each; the last one allowed is the end."""
        lines = self.arrays["events"]
        last = len(lines) - 1
        return [_event(i == last, *lines[i]) for i in range(self.num_events)]


def means(infos: Mapping[str, Any]) -> dict[str, float]:
    """Return an epoch's numbers from those of its batches.

    Their mean, leaving out NaN; the largest of those whose name begins with `largest_`,
    and the sum of `num_`.
    """
    row = {}
    for name, value in infos.items():
        values = np.asarray(value, float)
        if name.startswith("largest_"):
            row[name] = float(np.max(values))
        elif name.startswith("num_"):
            row[name] = float(np.sum(values))
        elif name != "is_finite":
            known = values[~np.isnan(values)]
            row[name] = float(np.mean(known)) if len(known) else float("nan")
    return row


def _event(
    gives_up: bool,
    epoch: float,
    reason: float,
    largest: float,
    back: float,
    scale: float,
) -> dict[str, Any]:
    finite = _REASONS[int(reason)] != "not finite"
    text = "an energy or a weight was not finite"
    if finite:
        text = f"an energy reached {largest:.3g}, beyond `energy_limit`"
    event: dict[str, Any] = {
        "event": "stop" if gives_up else "roll-back",
        "epoch": int(epoch),
        "reason": text,
        "largest_energy": float(largest) if np.isfinite(largest) else None,
        "is_finite": finite,
    }
    then = "It gives up."
    if not gives_up:
        event |= {"back_to_epoch": int(back), "scale": float(scale)}
        then = (
            f"It goes back to epoch {int(back)}, with steps of {scale:g} times those "
            "set."
        )
    return event | {"text": f"in epoch {int(epoch)}: {text}. {then}"}
