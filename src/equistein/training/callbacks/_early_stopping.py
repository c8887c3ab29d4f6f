"""The end of a fit that gets no better."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from equistein._gate import gate
from equistein._numbers import check_integers
from equistein.energies import AbstractEnergies
from equistein.training.callbacks._base import AbstractCallback, Row


@gate
@dataclasses.dataclass
class EarlyStopping(AbstractCallback):
    """Ends a fit once a column of its history has not improved for some epochs.

    Args:
        column: Its name, such as one that a `Monitor` gives.
        patience: The number of epochs without a better value that are waited for.
        maximize: Whether larger is better.

    Raises:
        ValueError: If `patience` is no positive integer.
    """

    column: str
    patience: int
    _: dataclasses.KW_ONLY
    maximize: bool = False

    def __post_init__(self):
        check_integers("EarlyStopping", patience=self.patience)

    def __call__(
        self, epoch: int, energy: AbstractEnergies, row: Row, *, last: bool
    ) -> Row:
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
