"""Maps from free numbers to the values of parameters."""

import abc
import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.lax import optimization_barrier as barrier
from jax.scipy.special import gammaln
from jaxtyping import Array, Float

from equistein._check_arguments import check_arguments
from equistein._types import Scalar

_FARTHER, _LOST = 1.1, 0.05  # factor on a free number, and its error when read back


class AbstractConstraint(eqx.Module):
    """A smooth map from free numbers onto the values of a parameter."""

    meaning: ClassVar[str]

    @abc.abstractmethod
    def forward(self, free: Float[Array, "*free"]) -> Float[Array, "*value"]:
        """Return the value."""

    @abc.abstractmethod
    def inverse(self, value: Float[Array, "*value"]) -> Float[Array, "*free"]:
        """Return free numbers of a value."""

    @abc.abstractmethod
    def log_jacobian(self, free: Float[Array, "*free"]) -> Scalar:
        """Return the log volume element of the map."""

    def allows(self, value: Float[Array, "*value"]) -> Array:
        """Return whether a finite value satisfies the constraint."""
        return jnp.all(jnp.isfinite(self.inverse(value)))

    def is_at_end(self, free: Float[Array, "*free"]) -> Array:
        """Return whether each value is about to be rounded to an end of its range.

        That is, whether 1.1 times the free number cannot be recovered from its value.
        """
        wide = _FARTHER * free
        return ~(jnp.abs(self.inverse(barrier(self.forward(wide))) - wide) < _LOST)

    @property
    def period(self) -> float:
        """The period of a free number; by default infinite."""
        return math.inf


@check_arguments
class Real(AbstractConstraint):
    """No constraint."""

    meaning: ClassVar[str] = "real numbers"

    def forward(self, free: Float[Array, "*free"]) -> Float[Array, "*value"]:
        return free

    def inverse(self, value: Float[Array, "*value"]) -> Float[Array, "*free"]:
        return value

    def log_jacobian(self, free: Float[Array, "*free"]) -> Scalar:
        return jnp.zeros((), free.dtype)


@check_arguments
class Positive(AbstractConstraint):
    r"""Numbers above 0, $x = e^u$."""

    meaning: ClassVar[str] = "numbers > 0"

    def forward(self, free: Float[Array, "*free"]) -> Float[Array, "*value"]:
        return jnp.exp(free)

    def inverse(self, value: Float[Array, "*value"]) -> Float[Array, "*free"]:
        return jnp.log(value)

    def log_jacobian(self, free: Float[Array, "*free"]) -> Scalar:
        return jnp.sum(free)


@check_arguments
class Interval(AbstractConstraint):
    r"""Numbers strictly between two others, $x = a + (b - a) / (1 + e^{-u})$."""

    meaning: ClassVar[str] = "numbers strictly inside the interval"
    low: float
    high: float

    def __init__(self, low: float, high: float):
        self.low, self.high = float(low), float(high)
        if not -math.inf < self.low < self.high < math.inf:
            raise ValueError(
                "an interval needs two finite ends, the lower one first, but got "
                f"({low!r}, {high!r}). For a number with one bound, make its distance "
                "to the bound a parameter that is `positive`."
            )

    def forward(self, free: Float[Array, "*free"]) -> Float[Array, "*value"]:
        return self.low + (self.high - self.low) * jax.nn.sigmoid(free)

    def inverse(self, value: Float[Array, "*value"]) -> Float[Array, "*free"]:
        return jnp.log(value - self.low) - jnp.log(self.high - value)

    def log_jacobian(self, free: Float[Array, "*free"]) -> Scalar:
        slopes = jax.nn.log_sigmoid(free) + jax.nn.log_sigmoid(-free)
        return jnp.sum(slopes + math.log(self.high - self.low))


@check_arguments
class Wrapped(AbstractConstraint):
    """Periodic numbers, from `low` up to `low + period`."""

    meaning: ClassVar[str] = "real numbers"
    length: float
    low: float

    def __init__(self, period: float, low: float = 0.0):
        if not (0 < period < math.inf and math.isfinite(low)):
            raise ValueError(
                f"a period must be > 0 and finite, `low` finite, but got {period!r} "
                f"and {low!r}. Leave out what is not periodic."
            )
        self.length, self.low = float(period), float(low)

    @property
    def period(self) -> float:
        return self.length

    def forward(self, free: Float[Array, "*free"]) -> Float[Array, "*value"]:
        return self.low + jnp.mod(free - self.low, self.length)

    def inverse(self, value: Float[Array, "*value"]) -> Float[Array, "*free"]:
        return value

    def log_jacobian(self, free: Float[Array, "*free"]) -> Scalar:
        return jnp.zeros((), free.dtype)


@check_arguments
class Simplex(AbstractConstraint):
    r"""Weights along the last axis, positive with sum 1, by one free number for each.

    $$w = \operatorname{softmax}(u), \qquad s = \sum_k e^{u_k} \sim \Gamma(K, 1)$$

    A permutation of weights is the same permutation of the free numbers, unlike for
    maps from K - 1 numbers. The sum s is independent of w and has a normalized density,
    so that it changes neither the density of w nor the evidence. A density of w is with
    respect to the first K - 1 weights, and the log volume is

    $$\sum_k u_k - s - \log \Gamma(K).$$
    """

    meaning: ClassVar[str] = "positive numbers whose sum along the last axis is 1"

    def forward(self, free: Float[Array, "*free"]) -> Float[Array, "*value"]:
        least = jnp.finfo(free.dtype).tiny  # a weight of 0 has no logarithm
        return jnp.maximum(jax.nn.softmax(free, axis=-1), least)

    def inverse(self, value: Float[Array, "*value"]) -> Float[Array, "*free"]:
        return jnp.log(value) + math.log(value.shape[-1])

    def log_jacobian(self, free: Float[Array, "*free"]) -> Scalar:
        rows = free.size // free.shape[-1]
        constant = rows * gammaln(float(free.shape[-1]))
        return jnp.sum(free) - jnp.sum(jnp.exp(free)) - constant.astype(free.dtype)

    def allows(self, value: Float[Array, "*value"]) -> Array:
        tolerance = float(jnp.finfo(value.dtype).eps) ** 0.5
        total = jnp.sum(value, axis=-1)
        return jnp.all(value > 0) & jnp.all(jnp.abs(total - 1) < tolerance)

    def is_at_end(self, free: Float[Array, "*free"]) -> Array:
        wide = _FARTHER * free
        gaps = self.inverse(barrier(self.forward(wide))) - wide
        return ~(gaps - jnp.min(gaps, axis=-1, keepdims=True) < _LOST)
