"""Contrastive divergence: data against samples of the model."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from equistein._gate import gate
from equistein._numbers import check_positive
from equistein._types import Key, Scalar
from equistein.energies import AbstractEnergy, check_one_density, fixed
from equistein.training._batch import Batch
from equistein.training.negatives._base import AbstractNegatives
from equistein.training.objectives._base import AbstractObjective, Info


@gate
class ContrastiveDivergence(AbstractObjective[AbstractEnergy]):
    r"""The energy of data minus that of samples of the model.

    $$L = \mathbb E\, E(x^+) - \mathbb E\, E(x^-)
      + \lambda \bigl(\mathbb E\, E(x^+)^2 + \mathbb E\, E(x^-)^2\bigr)$$

    With the negatives held fixed, the gradient of the first two terms in the weights
    estimates that of the mean negative log-likelihood of the data under $e^{-E}/Z$. The
    last term keeps energies small.

    Args:
        negatives: What draws $x^-$, such as `Persistent(sampler, initial)`.
        regularization: The weight $\lambda \ge 0$.

    Raises:
        ValueError: If an argument is not what it should be.

    References:
        Jaini, Holdijk and Welling (2021), Algorithm 1; Du and Mordatch (2019) for the
        regularization.
    """

    negatives: AbstractNegatives
    regularization: float = eqx.field(default=1e-3, converter=float)

    def __check_init__(self):
        owner = "ContrastiveDivergence"
        if not isinstance(self.negatives, AbstractNegatives):
            raise ValueError(
                f"{owner} needs `negatives`, such as es.negatives.Persistent(sampler, "
                f"initial), but got {self.negatives!r}."
            )
        check_positive(owner, zero=True, regularization=self.regularization)

    def init(self, key: Key, energy: AbstractEnergy, data: Batch) -> PyTree:
        check_one_density("ContrastiveDivergence", energy)
        return self.negatives.init(key, energy, data)

    def loss(
        self, key: Key, energy: AbstractEnergy, state: PyTree, batch: Batch
    ) -> tuple[Scalar, PyTree, Info]:
        drawn, state, info = self.negatives.draw(key, fixed(energy), state, batch)
        above = batch.evaluate(energy).energy
        below = jax.vmap(energy)(drawn)
        loss, energies = divergence(above, below, self.regularization)
        return loss, state, energies | info


def divergence(
    above, below, regularization: float, weight: Scalar | float = 1.0
) -> tuple[Scalar, Info]:
    """Return the loss of the energies of data and of negatives, with their means.

    The weight is that of their difference, beside the regularization.
    """
    positive, negative = jnp.mean(above), jnp.mean(below)
    loss = weight * (positive - negative)
    if regularization:
        loss += regularization * (jnp.mean(above**2) + jnp.mean(below**2))
    largest = jnp.maximum(jnp.max(jnp.abs(above)), jnp.max(jnp.abs(below)))
    return loss, {
        "positive_energy": positive,
        "negative_energy": negative,
        "largest_energy": largest,
    }
