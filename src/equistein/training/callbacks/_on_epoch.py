"""A function that is called with the numbers of each epoch."""

from collections.abc import Callable, Mapping

import numpy as np

from equistein._gate import gate
from equistein.energies import AbstractEnergies
from equistein.training.callbacks._base import AbstractCallback, Row


@gate
class OnEpoch(AbstractCallback):
    """Calls a function with the numbers of each epoch; where it says so, the fit ends.

    `fit` makes one of any function among its `callbacks`.

    Args:
        function: Of a dictionary of floats, with `epoch` and the columns of the
            history. If it returns True, the fit ends there and keeps what it learned;
            one that is resumed continues until the function says so again.
    """

    def __init__(self, function: Callable[[dict[str, float]], object]):
        self.function = function
        self._stops = False

    def __call__(
        self, epoch: int, energy: AbstractEnergies, row: Row, *, last: bool
    ) -> Row:
        answer = self.function({"epoch": epoch, **row})
        self._stops = isinstance(answer, bool | np.bool_) and bool(answer)
        return {}

    def wants_to_stop(self, history: Mapping[str, np.ndarray]) -> bool:
        return self._stops
