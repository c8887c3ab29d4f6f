"""Numbers of the energy that join the history."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx

from equistein._types import Scalar
from equistein.energies import AbstractEnergies
from equistein.training.callbacks._base import AbstractCallback


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
        if type(every) is not int or every < 1:
            raise ValueError(
                f"Monitor needs `every`, an integer >= 1, but got {every!r}."
            )
        self.function = eqx.filter_jit(function)
        self.every = every

    def columns(self, energy: AbstractEnergies) -> Sequence[str]:
        return list(eqx.filter_eval_shape(self.function, energy))

    def __call__(
        self,
        epoch: int,
        energy: AbstractEnergies,
        row: Mapping[str, float],
        *,
        last: bool,
    ) -> dict[str, float]:
        if epoch % self.every and not last:
            return {}
        return {name: float(value) for name, value in self.function(energy).items()}
