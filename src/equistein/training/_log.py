"""What a fit leaves of its epochs and of its failures."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from equistein.training._config import FitConfig, num_epochs_of
from equistein.training._state import TrainState

_REASONS = ("not finite", "energy limit")


class TrainingLog:
    """A fit's history and events, in arrays of fixed size that a checkpoint holds.

    Args:
        arrays: `rows`, a column of the history each, and `events`, a line each.
    """

    def __init__(self, arrays: dict[str, Any]):
        self.arrays = {
            "rows": {name: np.array(v) for name, v in arrays["rows"].items()},
            "events": np.array(arrays["events"]),
        }

    @classmethod
    def empty(cls, config: FitConfig, columns: Sequence[str]) -> "TrainingLog":
        """Return the log of a fit that has not begun."""
        rows = {name: np.full(num_epochs_of(config), np.nan) for name in columns}
        events = np.full((config.max_rollbacks + 1, 5), np.nan)
        return cls({"rows": rows, "events": events})

    @property
    def num_events(self) -> int:
        return int(np.sum(np.isfinite(self.arrays["events"][:, 0])))

    def add_row(self, epoch: int, row: dict[str, float]) -> None:
        """Keep the numbers of an epoch, counted from 0."""
        for name, value in row.items():
            self.arrays["rows"][name][epoch] = value

    def add_event(self, epoch: int, why: str, largest: float, good: TrainState) -> None:
        """Keep that an epoch, counted from 1, failed and where the fit went back to."""
        line = (
            epoch, _REASONS.index(why), largest, int(good.epoch),
            float(good.scale) / 2,
        )  # fmt: skip
        self.arrays["events"][self.num_events] = line
        if self.num_events == len(self.arrays["events"]):
            return  # it gives up
        for column in self.arrays["rows"].values():
            column[int(good.epoch) :] = np.nan  # these epochs come again

    def history(self) -> dict[str, np.ndarray]:
        """Return the columns, epochs first."""
        rows = self.arrays["rows"]
        num = len(next(iter(rows.values())))
        return {"epoch": np.arange(1, num + 1)} | dict(sorted(rows.items()))

    def events(self) -> list[dict[str, Any]]:
        """Return the failures, one object each; the last one allowed is the end."""
        lines = self.arrays["events"]
        return [
            _event(*line, gives_up=index == len(lines) - 1)
            for index, line in enumerate(lines[: self.num_events])
        ]

    def verdict(self, config: FitConfig) -> str:
        """Return why a fit gives up."""
        last = self.events()[-1]
        return (
            f"The fit diverged {self.num_events} times, at last in epoch "
            f"{last['epoch']}, where {last['reason']}; `max_rollbacks` allows "
            f"{config.max_rollbacks}. Take a smaller `learning_rate`, `langevin` or "
            "`stein_step`, a larger `regularization`, or a smaller `gradient_clip`."
        )


def _event(
    epoch: float, why: float, largest: float, back: float, scale: float, *,
    gives_up: bool,
) -> dict[str, Any]:  # fmt: skip
    reason = f"an energy reached {largest:.3g}, beyond `energy_limit`"
    if _REASONS[int(why)] == "not finite":
        reason = "an energy or a weight was not finite"
    told = {
        "epoch": int(epoch),
        "reason": reason,
        "largest_energy": float(largest) if np.isfinite(largest) else None,
        "is_finite": _REASONS[int(why)] != "not finite",
    }
    if gives_up:
        text = f"in epoch {int(epoch)}: {reason}. It gives up."
        return {"event": "stop", **told, "text": text}
    text = (
        f"in epoch {int(epoch)}: {reason}. It goes back to epoch {int(back)}, with "
        f"steps of {scale:g} times those set."
    )
    return {
        "event": "roll-back", **told, "back_to_epoch": int(back),
        "scale": float(scale), "text": text,
    }  # fmt: skip
