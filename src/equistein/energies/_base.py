"""The interface of energies."""

import abc
from typing import Any, TypeVar

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from equistein._check_arguments import check_arguments
from equistein._types import Particles, Point, Scalar
from equistein.groups import AbstractGroup, check_invariance


class Evaluation(eqx.Module):
    """What one evaluation of an energy gives.

    Attributes:
        energy: $E(x)$.
        logits: Of an energy with classes, whose softmax is $p(y | x)$; None for others.
    """

    energy: Float[Array, "*batch"]
    logits: Float[Array, "*batch class"] | None = None


class AbstractEnergy(eqx.Module):
    r"""A learned energy: $p(x) = e^{-E(x)} / Z$."""

    @abc.abstractmethod
    def __call__(self, point: Point) -> Scalar:
        """Return $E(x)$."""

    @abc.abstractmethod
    def group(self, shape: tuple[int, ...]) -> AbstractGroup:
        """Return the symmetry on points of this shape."""

    def log_density(self, point: Point) -> Scalar:
        r"""Return $-E(x)$: the log density up to $\log Z$."""
        return -self(point)

    def evaluate(self, point: Point) -> Evaluation:
        """Return the energy, with the logits it is made of if there are classes."""
        return Evaluation(self(point))

    def logits(self, point: Point) -> Float[Array, " class"]:
        """Return the logits, whose softmax is $p(y | x)$; or raise `ValueError`."""
        if (logits := self.evaluate(point).logits) is None:
            raise ValueError(f"{type(self).__name__} has no classes: fit labeled data.")
        return logits

    def check_symmetry(self, points: Particles) -> None:
        """Raise `InvarianceError` if it lacks the symmetry that it declares."""
        group = self.group(points.shape[1:])
        if group.order != 1:
            check_invariance(self.log_density, group, points)

    def num_classes(self, shape: tuple[int, ...]) -> int | None:
        """Return the number of classes of points of this shape, None without any."""
        return None

    def condition(self, label: int | np.integer) -> "AbstractEnergy":
        """Return the energy of the points of one class, or raise `ValueError`."""
        raise ValueError(
            f"`label` was {label!r}, but {type(self).__name__} has no classes: leave "
            "it out, or fit a JointEnergy to labeled data."
        )


Energy = TypeVar("Energy", bound=AbstractEnergy)
"""What an objective or a generator is for."""


Tree = TypeVar("Tree")


@check_arguments
def freeze(energy: Tree) -> Tree:
    """Return an energy, or another tree, whose weights no gradient flows through."""

    def stop(leaf):
        return jax.lax.stop_gradient(leaf) if eqx.is_inexact_array(leaf) else leaf

    return jax.tree.map(stop, energy)


@eqx.filter_jit
def values_at(function: Any, points: Particles) -> Any:
    """Return the value at each point, in blocks of 256."""
    return jax.lax.map(function, points, batch_size=256)
