"""The interface of generators."""

import abc
from collections.abc import Callable
from typing import Generic

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from equistein._progress import progress_bar
from equistein._types import Key, Particles, Scalar
from equistein.energies import Energies


class AbstractGenerator(eqx.Module, Generic[Energies]):
    """A way to draw new points from an energy that is known."""

    @abc.abstractmethod
    def sample(
        self,
        key: Key,
        energy: Energies,
        num: int,
        condition: int | np.integer | None = None,
        *,
        progress: bool = False,
    ) -> Particles:
        """Draw new points.

        Args:
            key: The source of randomness.
            energy: The energy.
            num: The number of points.
            condition: Which of the conditional energies, `energy.given(condition)`:
                a class, or the number of a formula; None draws from all together.
            progress: Whether to show a progress bar.

        Raises:
            ValueError: If the energy knows no such condition.
        """

    def scaled(self, factor: Scalar) -> "AbstractGenerator[Energies]":
        """Return the generator with all step sizes multiplied by a factor."""
        return self


def in_parts(
    key: Key,
    num: int,
    at_once: int,
    draw: Callable[[Key, int], Particles],
    progress: bool,
) -> Particles:
    """Return `num` points, drawn some at once."""
    size = min(num, at_once)
    parts = []
    for index in progress_bar(range(-(-num // size)), disable=not progress):
        parts.append(draw(jr.fold_in(key, index), size))
    return jnp.concatenate(parts)[:num]
