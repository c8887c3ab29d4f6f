"""The end of a fit that gets no better."""

from collections.abc import Mapping, Sequence

import numpy as np

from equistein.energies import AbstractEnergies
from equistein.training.callbacks._base import AbstractCallback


class EarlyStopping(AbstractCallback):
    """Ends a fit once a column of its history has not improved for some epochs.

    Args:
        column: Its name, such as one that a `Monitor` gives.
        patience: The number of epochs without a better value that are waited for.
        maximize: Whether larger is better.

    Raises:
        ValueError: If `patience` is no positive integer.
    """

    def __init__(self, column: str, patience: int, *, maximize: bool = False):
        if type(patience) is not int or patience < 1:
            raise ValueError(
                "EarlyStopping needs `patience`, an integer >= 1, but got "
                f"{patience!r}."
            )
        self.column = column
        self.patience = patience
        self.maximize = maximize

    def __call__(
        self,
        epoch: int,
        energy: AbstractEnergies,
        row: Mapping[str, float],
        *,
        last: bool,
    ) -> dict[str, float]:
        return {}

    def check(self, columns: Sequence[str]) -> None:
        if self.column not in columns:
            raise ValueError(
                f"EarlyStopping looks at `column` {self.column!r}, but the history has "
                f"{', '.join(columns)}: choose one of these, or add a Monitor of it."
            )

    def wants_to_stop(self, history: Mapping[str, np.ndarray]) -> bool:
        values = history[self.column]
        if not np.isfinite(values).any():
            return False
        best = np.nanargmax(values) if self.maximize else np.nanargmin(values)
        return len(values) - 1 - int(best) >= self.patience
