"""Rules that set a kernel's bandwidth from the particles."""

import abc
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from equistein._check_arguments import check_arguments
from equistein._numbers import check_integers, check_positive
from equistein._types import Scalar

SquaredDistances: TypeAlias = Float[Array, "n n"]


class AbstractBandwidth(eqx.Module):
    """A rule for the bandwidth, in whatever distance the kernel measures."""

    every: eqx.AbstractVar[int]  # the number of steps of SVGD between two measurements
    max_particles: eqx.AbstractVar[int]  # that it is measured on, at most

    @abc.abstractmethod
    def __call__(self, squared_distances: SquaredDistances) -> Scalar:
        """Return the bandwidth.

        The squared distances are those of (at most `max_particles`) particles: between
        orbits, or between features, for symmetric kernels.
        """


Bandwidth: TypeAlias = float | Scalar | AbstractBandwidth


@check_arguments
class Median(AbstractBandwidth):
    r"""The median rule: $h = c\, \mathrm{med} / \sqrt{2 \log n}$.

    med is the median distance between different particles: between orbits or features
    for symmetric kernels. A median costs many steps of SVGD, so it is taken every
    `every` steps, over `max_particles` at most, and no gradient flows through it. It is
    1 when all particles coincide. The multiple $c$ is `factor`.

    References:
        Liu and Wang (2016), Stein Variational Gradient Descent, section 5.
    """

    factor: float = 1.0
    every: int = 100
    max_particles: int = 512

    def __check_init__(self):
        check_positive("Median", factor=self.factor)
        check_integers("Median", every=self.every, max_particles=self.max_particles)

    def __call__(self, squared_distances: SquaredDistances) -> Scalar:
        num = len(squared_distances)
        if num < 2:
            return jnp.ones((), squared_distances.dtype)
        lower, upper = _middle_pairs(squared_distances)
        median = jnp.sqrt((lower + upper) / 2)
        bandwidth = self.factor * median / jnp.sqrt(2 * jnp.log(float(num)))
        bandwidth = bandwidth.astype(squared_distances.dtype)
        return jax.lax.stop_gradient(jnp.where(bandwidth > 0, bandwidth, 1))


def _middle_pairs(squared_distances: SquaredDistances) -> tuple[Scalar, Scalar]:
    """Return the two middle squared distances between different points."""
    num = len(squared_distances)
    pairs = num * (num - 1) // 2
    above = jnp.triu(jnp.ones((num, num), bool), k=1)
    values = jnp.where(above, squared_distances, jnp.inf)
    lower = _smallest(values, (pairs - 1) // 2)
    seen = values <= lower
    upper = jnp.min(jnp.where(seen, jnp.inf, values))
    return lower, jnp.where(jnp.sum(seen) > pairs // 2, lower, upper)


def _smallest(values: Float[Array, "n n"], rank: int) -> Scalar:
    """Return the value of a rank among nonnegative numbers, bit by bit, by counting."""
    # Their bits are in the order of the numbers. A sort takes several times as long.
    width = values.dtype.itemsize * 8
    words = jnp.dtype(f"int{width}")
    bits = jax.lax.bitcast_convert_type(values, words)

    def narrow(place: Int[Array, ""], found: Int[Array, ""]) -> Int[Array, ""]:
        # The largest number with fewer than `rank + 1` below it has this bit or not.
        tried = found | (jnp.ones((), words) << (width - 2 - place).astype(words))
        return jnp.where(jnp.sum(bits < tried) <= rank, tried, found)

    found = jax.lax.fori_loop(0, width - 1, narrow, jnp.zeros((), words))
    return jax.lax.bitcast_convert_type(found, values.dtype)
