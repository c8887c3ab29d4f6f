"""A posterior of which each step looks at a batch of the data."""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Int, PyTree

from equistein._gate import gate, keyed
from equistein._numbers import check_integers
from equistein._types import Key, LogDensity, Particles, Point, Scalar

_AT_ONCE = 1_024  # data looked at together where all of it is


def _rows_of(data: Any) -> PyTree:
    """Return data as arrays; raise `ValueError` unless they have as many rows each."""
    try:
        data = jax.tree.map(jnp.asarray, data)
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"`data` must be arrays of numbers: {error}.") from None
    shapes = [leaf.shape for leaf in jax.tree.leaves(data)]
    if not shapes or () in shapes or len({shape[0] for shape in shapes}) != 1:
        raise ValueError(
            "`data` must be arrays with as many rows each, one for each datum, but "
            f"have shapes {shapes}."
        )
    return data


@gate
class Minibatched(eqx.Module):
    r"""A log posterior, of whose data each step of a sampler takes a new batch.

    $$\log p(x) = \log p_0(x) + \sum_{i=1}^N \log p(y_i \mid x), \qquad
      \hat\ell_B(x) = \log p_0(x) + \frac N{|B|} \sum_{i \in B} \log p(y_i \mid x)$$

    The batch is drawn with replacement, the same for all particles, so $\hat\ell_B$ and
    its gradient are right on average. `SVGD` and `Langevin` take it, and those alone: a
    Metropolis step would be biased by its noise. The error falls with the step: a
    Langevin step $\eta$ runs at the temperature $1 + \eta V / 2$ along a coordinate
    whose score has the variance $V$, which is `score_noise` squared. Keep $\eta V$
    below a tenth. Called with a point it is the log posterior with all data.

    Args:
        log_prior: The log density of the prior at a point.
        log_likelihood: Of a point and one datum, the log likelihood.
        data: The data: an array, or a tree of arrays, stacked on axis 0.
        batch_size: The number of data of a step.

    References:
        Welling and Teh (2011), Bayesian learning via stochastic gradient Langevin
        dynamics; Liu and Wang (2016), section 4.
    """

    log_prior: Callable[[Point], Scalar]
    log_likelihood: Callable[[Point, Any], Scalar]
    data: PyTree = eqx.field(converter=_rows_of)
    _: dataclasses.KW_ONLY
    batch_size: int = eqx.field(static=True)

    def __check_init__(self):
        check_integers("Minibatched", batch_size=self.batch_size)

    @property
    def num_data(self) -> int:
        """The number of the data."""
        return len(jax.tree.leaves(self.data)[0])

    def __call__(self, point: Point) -> Scalar:
        each = jax.lax.map(
            lambda datum: self.log_likelihood(point, datum), self.data,
            batch_size=min(_AT_ONCE, self.num_data),
        )  # fmt: skip
        return self.log_prior(point) + jnp.sum(each)

    @keyed
    def at(self, key: Key) -> LogDensity:
        """Return the estimate of the log posterior by a batch."""
        rows = self._rows(key, self.batch_size)
        batch = jax.tree.map(lambda leaf: leaf[rows], self.data)
        factor = self.num_data / self.batch_size

        def log_density(point):
            each = jax.vmap(self.log_likelihood, (None, 0))(point, batch)
            return self.log_prior(point) + factor * jnp.sum(each)

        return log_density

    @keyed
    def score_noise(self, key: Key, points: Particles, num: int = 256) -> Scalar:
        r"""Return the standard deviation of a coordinate of a batch's score.

        $$\sqrt V = \frac N{\sqrt{|B|}}\, \mathrm{sd}_i\, \partial \log p(y_i \mid x)$$

        as the root mean square over the points and their coordinates.

        Args:
            key: The source of randomness.
            points: Where, stacked on axis 0, such as at particles of a first run.
            num: The data that the deviation is estimated from.
        """
        some = jax.tree.map(lambda leaf: leaf[self._rows(key, num)], self.data)
        scores = jax.vmap(
            jax.vmap(jax.grad(self.log_likelihood), (None, 0)), (0, None)
        )(points, some)
        variance = jnp.mean(jnp.var(scores, axis=1, ddof=1))
        return self.num_data * jnp.sqrt(variance / self.batch_size)

    def _rows(self, key: Key, num: int) -> Int[Array, " row"]:
        return jr.randint(key, (num,), 0, self.num_data)


def with_batch(key: Key, log_density: LogDensity) -> tuple[Key, LogDensity]:
    """Return the key of a step and its density, that of a batch for `Minibatched`."""
    if not isinstance(log_density, Minibatched):
        return key, log_density
    batch_key, step_key = jr.split(key)
    return step_key, log_density.at(batch_key)
