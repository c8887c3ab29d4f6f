"""The interface of generators."""

import abc
from typing import Generic

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from equistein._arrays import check_num
from equistein._gate import keyed
from equistein._progress import progress_bar
from equistein._types import Key, Particles, Scalar
from equistein.energies import Energies
from equistein.training.generators._clamp import Clamp

Condition = int | np.integer | Clamp | None
"""What is drawn: a class or the number of a formula, of which `energy.given(label)` is
the energy; or what goes with coordinates that are held; None is all together."""


class AbstractGenerator(eqx.Module, Generic[Energies]):
    """A way to draw new points from an energy that is known.

    Attributes:
        num_at_once: The number of points drawn together.
    """

    num_at_once: eqx.AbstractVar[int]

    @abc.abstractmethod
    def draw(
        self, key: Key, energy: Energies, num: int, condition: Condition
    ) -> Particles:
        """Draw new points, all together.

        Raises:
            ValueError: If the energy knows no such condition, or a clamp is outside
                the points.
        """

    @keyed
    def sample(
        self,
        key: Key,
        energy: Energies,
        num: int,
        condition: Condition = None,
        *,
        progress: bool = False,
    ) -> Particles:
        """Draw any number of new points, some at once.

        Raises:
            ValueError: If `num` is no positive integer, the energy knows no such
                condition, or a clamp is outside the points.
        """
        check_num(num)
        size, parts = min(num, self.num_at_once), []
        for index in progress_bar(range(-(-num // size)), disable=not progress):
            parts.append(self.draw(jr.fold_in(key, index), energy, size, condition))
        return jnp.concatenate(parts)[:num]

    def scaled(self, factor: Scalar) -> "AbstractGenerator[Energies]":
        """Return the generator with all step sizes multiplied by a factor."""
        return self
