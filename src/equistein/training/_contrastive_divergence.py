"""Contrastive divergence: data against samples of the model."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from equistein._gate import gate
from equistein._numbers import check_positive
from equistein._types import Key
from equistein.energies import AbstractEnergy, check_one_density, fixed
from equistein.training._batch import Batch
from equistein.training._negatives import AbstractNegatives
from equistein.training._objectives import AbstractObjective, Loss


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
        ValueError: If `regularization` is negative.

    References:
        Jaini, Holdijk and Welling (2021), Algorithm 1; Du and Mordatch (2019) for the
        regularization.
    """

    negatives: AbstractNegatives
    regularization: float = eqx.field(default=1e-3, converter=float)

    def __check_init__(self):
        weight = {"regularization": self.regularization}
        check_positive("ContrastiveDivergence", zero=True, **weight)

    def init(self, key: Key, energy: AbstractEnergy, data: Batch) -> Any:
        check_one_density("ContrastiveDivergence", energy)
        return self.negatives.init(key, energy, data)

    def loss(self, key: Key, energy: AbstractEnergy, state: Any, batch: Batch) -> Loss:
        drawn, state, info = self.negatives.draw(key, fixed(energy), state, batch)
        above, below = batch.evaluate(energy).energy, jax.vmap(energy)(drawn)
        positive, negative = jnp.mean(above), jnp.mean(below)
        loss = positive - negative
        if self.regularization:
            squares = jnp.mean(above**2) + jnp.mean(below**2)
            loss += self.regularization * squares
        largest = jnp.maximum(jnp.max(jnp.abs(above)), jnp.max(jnp.abs(below)))
        info |= {
            "positive_energy": positive,
            "negative_energy": negative,
            "largest_energy": largest,
        }
        return loss, state, info
