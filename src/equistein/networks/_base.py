"""The interface of networks."""

import abc

import equinox as eqx
from jaxtyping import Array, Float

from equistein._types import Point, Scalar
from equistein.groups import AbstractGroup


class AbstractNetwork(eqx.Module):
    r"""A function of a point with a symmetry, $f(gx) = f(x)$.

    Its value is one number, or one for each class, of which `PlainEnergy` and
    `JointEnergy` make the energies $-f(x)$ and $-\log \sum_y e^{f(x)[y]}$.
    """

    @abc.abstractmethod
    def __call__(self, point: Point) -> Float[Array, "*class"]:
        """Return $f(x)$."""

    @abc.abstractmethod
    def group(self, shape: tuple[int, ...]) -> AbstractGroup:
        """Return the symmetry of the network on points of this shape."""

    @property
    def num_outputs(self) -> int | None:
        """The number of outputs; None where it depends on the point."""
        return None


class AbstractNoiseNetwork(AbstractNetwork):
    r"""A function of a point and of the level of noise in it, $f(x, \sigma)$."""

    @abc.abstractmethod
    def __call__(self, point: Point, noise: Scalar | None = None) -> Scalar:
        r"""Return $f(x, \sigma)$; without a noise one function of x alone."""
