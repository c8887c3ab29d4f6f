"""The interface of a Bayesian model whose posterior has a symmetry."""

import abc
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Int, PyTree

from equistein._types import Key, Particles, Scalar
from equistein.posteriors import Parameters, Posterior


class AbstractModel(eqx.Module):
    """A model with data: its density, its prior, and what is looked at of its draws.

    Parameters are trees of arrays. What is looked at has no labels, but for
    `components` and `copy`, which show whether labels are sampled as they should be.
    """

    @property
    @abc.abstractmethod
    def num_copies(self) -> int:
        """The number of copies that `copy` tells apart."""

    @abc.abstractmethod
    def parameters(self) -> Parameters:
        """Return how the parameters are laid out, constrained and exchanged."""

    @abc.abstractmethod
    def log_density(self, tree: PyTree) -> Scalar:
        """Return the log prior and the log likelihood, with all constants."""

    @abc.abstractmethod
    def prior(self, key: Key) -> PyTree:
        """Draw the parameters from the prior."""

    @abc.abstractmethod
    def quantities(self, tree: PyTree) -> Float[Array, " quantity"]:
        """Return numbers that do not depend on the labels."""

    @abc.abstractmethod
    def components(self, tree: PyTree) -> Float[Array, " component"]:
        """Return one number of each component, in the order of the labels."""

    @abc.abstractmethod
    def copy(self, tree: PyTree) -> Int[Array, ""]:
        """Return in which of `num_copies` equally likely copies the labels are."""

    @abc.abstractmethod
    def truth(self) -> Float[Array, " quantity"] | None:
        """Return what the quantities truly are, None where that is not known."""

    @abc.abstractmethod
    def scores(self, trees: PyTree) -> dict[str, Scalar]:
        """Return further metrics of draws, stacked on axis 0."""

    def posterior(self) -> Posterior:
        """Return the posterior of flat points, which starts at draws from the prior."""
        return Posterior(self.log_density, self.parameters(), self.prior_points)

    def prior_points(self, key: Key, num: int) -> Particles:
        """Return flat draws from the prior: the start of all samplers."""
        return _prior_points(self, self.parameters(), key, num)


@eqx.filter_jit
def _prior_points(
    model: AbstractModel, parameters: Parameters, key: Key, num: int
) -> Particles:
    trees = jax.vmap(model.prior)(jr.split(key, num))
    return jax.vmap(parameters.flatten)(trees)


def order_number(values: Float[Array, " component"]) -> Int[Array, ""]:
    """Return the number, from 0, of the order that some values are in."""
    num = len(values)
    smaller_after = jnp.sum(jnp.triu(values[:, None] > values[None]), axis=1)
    factorials = [math.factorial(num - 1 - place) for place in range(num)]
    return jnp.sum(smaller_after * jnp.asarray(factorials))
