"""A function that is told of each epoch."""

import dataclasses
from collections.abc import Callable

from equistein.energies import AbstractEnergies
from equistein.training.callbacks._base import AbstractCallback, Row


@dataclasses.dataclass
class OnEpoch(AbstractCallback):
    """Calls a function with the numbers of each epoch.

    Args:
        function: Of a dictionary, with `epoch` and the columns of the history.
    """

    function: Callable[[dict[str, float]], object]

    def __call__(
        self, epoch: int, energy: AbstractEnergies, row: Row, *, last: bool
    ) -> Row:
        self.function({"epoch": epoch, **row})
        return {}
