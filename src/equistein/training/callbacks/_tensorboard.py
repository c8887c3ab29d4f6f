"""Curves of a fit for TensorBoard, which must be installed."""

import pathlib

import numpy as np

from equistein._gate import gate
from equistein.energies import AbstractEnergies
from equistein.training.callbacks._base import AbstractCallback, Row


@gate
class TensorBoard(AbstractCallback):
    """Writes the numbers of each epoch where TensorBoard reads them.

    `tensorboard --logdir FOLDER` shows them while the fit continues.

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
