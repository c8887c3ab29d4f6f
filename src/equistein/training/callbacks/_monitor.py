"""Numbers of the energy that join the history."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx

from equistein._gate import gate
from equistein._numbers import check_integers
from equistein._types import Scalar
from equistein.energies import AbstractEnergies
from equistein.training.callbacks._base import AbstractCallback, Row


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

    def __init__(
        self,
        function: Callable[[Any], Mapping[str, Scalar]],
        every: int = 1,
    ):
        check_integers("Monitor", every=every)
        self.function = eqx.filter_jit(function)
        self.every = every

    def columns(self, energy: AbstractEnergies) -> Sequence[str]:
        return list(eqx.filter_eval_shape(self.function, energy))

    def __call__(
        self, epoch: int, energy: AbstractEnergies, row: Row, *, last: bool
    ) -> Row:
        if epoch % self.every and not last:
            return {}
        return {name: float(value) for name, value in self.function(energy).items()}
