"""Rules that set a kernel's bandwidth from the particles."""

import abc
from collections.abc import Callable
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein._gate import gate
from equistein._numbers import check_integers, check_positive
from equistein._types import Scalar
from equistein.kernels._median import middle_pairs

SquaredDistances: TypeAlias = Float[Array, "n n"]
Discrepancy: TypeAlias = Callable[[Scalar], Scalar]


class AbstractBandwidth(eqx.Module):
    """A rule for the bandwidth, in whatever distance the kernel measures.

    Attributes:
        every: The number of steps of SVGD between two measurements.
        max_particles: The number of particles it is measured on, at most.
    """

    every: eqx.AbstractVar[int]
    max_particles: eqx.AbstractVar[int]

    @abc.abstractmethod
    def __call__(
        self, squared_distances: SquaredDistances, discrepancy: Discrepancy
    ) -> Scalar:
        """Return the bandwidth.

        Args:
            squared_distances: Of (at most `max_particles`) particles, as the kernel
                sees them: between orbits, or between features.
            discrepancy: Their squared kernel Stein discrepancy without own terms, as a
                function of the bandwidth.
        """


Bandwidth: TypeAlias = float | Scalar | AbstractBandwidth


@gate
class Median(AbstractBandwidth):
    r"""The median rule: $h = c\, \mathrm{med} / \sqrt{2 \log n}$.

    med is the median distance between different particles, so that the sum of a
    particle's $n$ kernel values is about the value with itself. Symmetric kernels
    measure it between orbits or between features. A median costs many steps of
    SVGD, so it is taken every `every` steps, over `max_particles` at most, and no
    gradient flows through it. It is 1 when all particles coincide.

    Args:
        factor: The multiple $c$ of the rule.
        every: The number of steps between two medians.
        max_particles: The number of particles the median is taken over.

    Raises:
        ValueError: If an argument is not positive.

    References:
        Liu and Wang (2016), Stein Variational Gradient Descent, section 5.
    """

    factor: float = 1.0
    every: int = 100
    max_particles: int = 512

    def __check_init__(self):
        check_positive("Median", factor=self.factor)
        check_integers("Median", every=self.every, max_particles=self.max_particles)

    def __call__(
        self, squared_distances: SquaredDistances, discrepancy: Discrepancy
    ) -> Scalar:
        del discrepancy
        num = len(squared_distances)
        if num < 2:
            return jnp.ones((), squared_distances.dtype)
        lower, upper = middle_pairs(squared_distances)
        median = jnp.sqrt((lower + upper) / 2)
        bandwidth = self.factor * median / jnp.sqrt(2 * jnp.log(float(num)))
        bandwidth = bandwidth.astype(squared_distances.dtype)
        return jax.lax.stop_gradient(jnp.where(bandwidth > 0, bandwidth, 1))


@gate
class MaximumDiscrepancy(AbstractBandwidth):
    r"""The bandwidth at which the particles look worst, learned while sampling.

    $$h = \arg\max_{c}\ \mathrm{KSD}^2_u(c\, h_{\mathrm{med}})$$

    over multiples c of the median rule, where KSD is the kernel Stein discrepancy
    without the terms of a particle with itself: the kernel that sees most of the
    difference between particles and target also moves it fastest, since the squared
    discrepancy is the rate at which SVGD lowers the Kullback-Leibler divergence. Each
    choice takes about as many kernel sums as there are multiples and dimensions, over
    `max_particles`.

    Args:
        factors: The multiples c.
        every: The number of steps between two choices.
        max_particles: The number of particles the discrepancy is measured on.

    Raises:
        ValueError: If an argument is not positive.

    References:
        Liu and Wang (2016), equation 9, for the rate; the bandwidth as a maximum is the
        open question of Jaini, Holdijk and Welling (2021), section 6.
    """

    factors: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0, 4.0)
    every: int = 100
    max_particles: int = 128

    def __check_init__(self):
        name = "MaximumDiscrepancy"
        if not self.factors:
            raise ValueError(f"{name} needs `factors`, at least one.")
        for factor in self.factors:
            check_positive(name, factors=factor)
        check_integers(name, every=self.every)
        check_integers(name, least=2, max_particles=self.max_particles)

    def __call__(
        self, squared_distances: SquaredDistances, discrepancy: Discrepancy
    ) -> Scalar:
        median = Median()(squared_distances, discrepancy)
        bandwidths = median * jnp.asarray(self.factors, median.dtype)
        values = jax.lax.map(discrepancy, bandwidths)
        return bandwidths[jnp.argmax(values)]
