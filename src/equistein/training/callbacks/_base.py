"""The interface of callbacks."""

import abc
from collections.abc import Mapping, Sequence

import numpy as np

from equistein.energies import AbstractEnergies

Row = Mapping[str, float]
"""The numbers of an epoch by name."""


class AbstractCallback(abc.ABC):
    """Something that looks at a fit after each epoch."""

    @abc.abstractmethod
    def __call__(
        self, epoch: int, energy: AbstractEnergies, row: Row, *, last: bool
    ) -> Row:
        """Look at an epoch, and return numbers for the history.

        Args:
            epoch: Its number, from 1.
            energy: The running mean of the energies.
            row: The numbers of the epoch so far.
            last: Whether it is the last one.
        """

    def columns(self, energy: AbstractEnergies) -> Sequence[str]:
        """Return the names of the numbers it gives, for an energy of this kind."""
        return ()

    def check(self, columns: Sequence[str]) -> None:
        """Raise `ValueError` if the history lacks a column that it looks at."""
        del columns  # most look at none

    def wants_to_stop(self, history: Mapping[str, np.ndarray]) -> bool:
        """Return whether the fit should end here, from the history so far."""
        return False
