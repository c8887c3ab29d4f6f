"""A mixture of normal densities with the priors of Chib (1995)."""

import math

import jax.numpy as jnp
import jax.random as jr
from jax.scipy.special import gammaln, logsumexp
from jax.scipy.stats import norm
from jaxtyping import Array, Float, Int

from equistein._types import Key, Scalar
from equistein.experiments.posteriors._galaxies import known_mixture
from equistein.experiments.posteriors._model import AbstractModel, order_number
from equistein.posteriors import Parameters

_MEAN, _SPREAD = 20.0, 10.0
_SHAPE, _RATE = 3.0, 20.0

Tree = dict[str, Float[Array, " component"]]


class Mixture(AbstractModel):
    r"""A mixture of K normal densities with means, variances and weights of their own.

    $$y_i \sim \sum_j w_j\, \mathcal N(\mu_j, \sigma_j^2), \qquad
      \mu_j \sim \mathcal N(20, 100), \quad \sigma_j^2 \sim \mathrm{IG}(3, 20), \quad
      w \sim \mathrm{Dirichlet}(1, \dots, 1)$$

    References:
        Chib (1995), Marginal likelihood from the Gibbs output, section 4.2.1.
    """

    data: Float[Array, " galaxy"]
    num_components: int
    is_simulated: bool = False

    @property
    def num_copies(self) -> int:
        return math.factorial(self.num_components)

    def parameters(self) -> Parameters:
        ones = jnp.ones(self.num_components)
        example = {
            "mean": _MEAN * ones,
            "variance": _RATE / _SHAPE * ones,
            "weight": ones / self.num_components,
        }
        labels = dict.fromkeys(example, 0) if self.num_components > 1 else None
        return Parameters(
            example, exchangeable=labels, positive=["variance"], simplex=["weight"]
        )

    def log_density(self, tree: Tree) -> Scalar:
        mean, variance, weight = tree["mean"], tree["variance"], tree["weight"]
        each = norm.logpdf(self.data[:, None], mean[None], jnp.sqrt(variance)[None])
        likelihood = jnp.sum(logsumexp(jnp.log(weight)[None] + each, axis=1))
        inverse_gamma = (
            _SHAPE * jnp.log(_RATE) - gammaln(_SHAPE)
            - (_SHAPE + 1) * jnp.log(variance) - _RATE / variance
        )  # fmt: skip
        prior = norm.logpdf(mean, _MEAN, _SPREAD) + inverse_gamma
        return likelihood + jnp.sum(prior) + gammaln(float(self.num_components))

    def prior(self, key: Key) -> Tree:
        mean_key, variance_key, weight_key = jr.split(key, 3)
        num = self.num_components
        return {
            "mean": _MEAN + _SPREAD * jr.normal(mean_key, (num,)),
            "variance": _RATE / jr.gamma(variance_key, _SHAPE, (num,)),
            "weight": jr.dirichlet(weight_key, jnp.ones(num)),
        }

    def quantities(self, tree: Tree) -> Float[Array, " quantity"]:
        order = jnp.argsort(tree["mean"])
        logs = jnp.log(tree["variance"]), jnp.log(tree["weight"])
        return jnp.concatenate([part[order] for part in (tree["mean"], *logs)])

    def components(self, tree: Tree) -> Float[Array, " component"]:
        return tree["mean"]

    def copy(self, tree: Tree) -> Int[Array, ""]:
        return order_number(tree["mean"])

    def scores(self, trees: dict[str, Array]) -> dict[str, Scalar]:
        del trees
        return {}

    def truth(self) -> Float[Array, " quantity"] | None:
        if not self.is_simulated:
            return None
        return self.quantities(known_mixture(self.num_components))
