"""What looks at a fit after each epoch."""

import abc
import dataclasses
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import numpy as np

from equistein._gate import gate
from equistein._numbers import check_integers
from equistein._types import Scalar
from equistein.energies import AbstractEnergies

Row = Mapping[str, float]
"""The numbers of an epoch by name."""


class AbstractCallback(abc.ABC):
    """Something that looks at a fit after each epoch."""

    @abc.abstractmethod
    def __call__(
        self, epoch: int, energy: AbstractEnergies, row: Row, *, last: bool
    ) -> Row:
        """Look at an epoch, counted from 1, and return numbers for the history.

        Args:
            epoch: Its number.
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


@gate
class Monitor(AbstractCallback):
    """A function of the averaged energy whose numbers join the history.

    Args:
        function: From an energy, numbers by name; it is compiled. Give arrays that it
            needs with `eqx.Partial(function, arrays)`, or they become constants.
        every: The number of epochs between two looks; others have NaN.

    Raises:
        ValueError: If `every` is no positive integer.
    """

    def __init__(self, function: Callable[[Any], Mapping[str, Scalar]], every: int = 1):
        check_integers("Monitor", every=every)
        self.function, self.every = eqx.filter_jit(function), every

    def columns(self, energy: AbstractEnergies) -> Sequence[str]:
        return list(eqx.filter_eval_shape(self.function, energy))

    def __call__(
        self, epoch: int, energy: AbstractEnergies, row: Row, *, last: bool
    ) -> Row:
        if epoch % self.every and not last:
            return {}
        return {name: float(value) for name, value in self.function(energy).items()}


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
        self.function, self._stops = function, False

    def __call__(
        self, epoch: int, energy: AbstractEnergies, row: Row, *, last: bool
    ) -> Row:
        answer = self.function({"epoch": epoch, **row})
        self._stops = isinstance(answer, bool | np.bool_) and bool(answer)
        return {}

    def wants_to_stop(self, history: Mapping[str, np.ndarray]) -> bool:
        return self._stops


def as_callback(callback: Any) -> AbstractCallback:
    """Return a callback; a function becomes `OnEpoch`."""
    if isinstance(callback, AbstractCallback):
        return callback
    if isinstance(callback, type) or not callable(callback):
        raise ValueError(
            "`callbacks` must hold functions of a dictionary, or callbacks such as "
            f"Monitor(function), but got {callback!r}."
        )
    return OnEpoch(callback)


@gate
class TensorBoard(AbstractCallback):
    """Writes the numbers of each epoch where `tensorboard --logdir FOLDER` reads them.

    Args:
        folder: Where to write; one folder a fit.

    Raises:
        ImportError: If tensorboardX is not installed, with the command that does.
    """

    def __init__(self, folder: pathlib.Path | str):
        try:
            from tensorboardX import SummaryWriter  # type: ignore
        except ImportError:
            raise ImportError(
                "TensorBoard's files are written by tensorboardX: "
                "pip install 'equistein[tensorboard]'."
            ) from None
        self._writer = SummaryWriter(str(folder))

    def __call__(
        self, epoch: int, energy: AbstractEnergies, row: Row, *, last: bool
    ) -> Row:
        for name, value in row.items():
            if np.isfinite(value):
                self._writer.add_scalar(name, float(value), epoch)
        self._writer.flush()
        return {}
