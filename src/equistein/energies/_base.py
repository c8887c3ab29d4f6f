"""The interface of energies."""

import abc
from typing import TypeVar

import equinox as eqx
import jax
from jaxtyping import Array, Float

from equistein._types import Point, Scalar
from equistein.groups import AbstractGroup


class Evaluation(eqx.Module):
    """What one evaluation of an energy gives.

    Attributes:
        energy: $E(x)$.
        logits: What a joint energy has it from, $f(x)$; None for others.
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
        """Return the symmetry of the energy on points of this shape."""

    def log_density(self, point: Point) -> Scalar:
        r"""Return $-E(x)$: the log density up to $\log Z$."""
        return -self(point)

    def evaluate(self, point: Point) -> Evaluation:
        """Return the energy with what it comes from, for those who need both."""
        return Evaluation(self(point))

    def given(self, label: int) -> "AbstractEnergy":
        """Return the energy of the points of one class.

        Raises:
            ValueError: If the energy knows no classes, or not this one.
        """
        raise ValueError(
            f"`label` was {label!r}, but {type(self).__name__} has no classes: leave "
            "it out, or fit a JointEnergy to labelled data."
        )


Energy = TypeVar("Energy", bound=eqx.Module)


def fixed(energy: Energy) -> Energy:
    """Return an energy whose weights no gradient flows through."""

    def stop(leaf):
        return jax.lax.stop_gradient(leaf) if eqx.is_inexact_array(leaf) else leaf

    return jax.tree.map(stop, energy)
