"""A mixture of normal densities with its data, and how draws are measured."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.scipy.special import gammaln, logsumexp
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from equistein.metrics import summarize_chains
from equistein.posteriors import Parameters, Posterior
from experiments._engine import Key, Particles, Point, Scalar

# In 1 000 km/s. Roeder (1990), Density estimation with confidence sets exemplified by
# superclusters and voids in the galaxies, JASA 85, table 1. The 78th is 26.96 there;
# `galaxies` of R's MASS, which others took over, has 26.69.
_VELOCITIES = (
    9.172, 9.350, 9.483, 9.558, 9.775, 10.227, 10.406, 16.084, 16.170, 18.419, 18.552,
    18.600, 18.927, 19.052, 19.070, 19.330, 19.343, 19.349, 19.440, 19.473, 19.529,
    19.541, 19.547, 19.663, 19.846, 19.856, 19.863, 19.914, 19.918, 19.973, 19.989,
    20.166, 20.175, 20.179, 20.196, 20.215, 20.221, 20.415, 20.629, 20.795, 20.821,
    20.846, 20.875, 20.986, 21.137, 21.492, 21.701, 21.814, 21.921, 21.960, 22.185,
    22.209, 22.242, 22.249, 22.314, 22.374, 22.495, 22.746, 22.747, 22.888, 22.914,
    23.206, 23.241, 23.263, 23.484, 23.538, 23.542, 23.666, 23.706, 23.711, 24.129,
    24.285, 24.289, 24.366, 24.717, 24.990, 25.633, 26.960, 26.995, 32.065, 32.789,
    34.279,
)  # fmt: skip
_MEAN, _SPREAD = 20.0, 10.0
_SHAPE, _RATE = 3.0, 20.0

Tree = dict[str, Float[Array, " component"]]


class Mixture(eqx.Module):
    r"""A mixture of K normal densities with means, variances and weights of their own.

    $$y_i \sim \sum_j w_j\, \mathcal N(\mu_j, \sigma_j^2), \qquad
      \mu_j \sim \mathcal N(20, 100), \quad \sigma_j^2 \sim \mathrm{IG}(3, 20), \quad
      w \sim \mathrm{Dirichlet}(1, \dots, 1)$$

    References:
        Chib (1995), Marginal likelihood from the Gibbs output, section 4.2.1.
    """

    data: Float[Array, " galaxy"]
    num_components: int

    def __init__(self, num_components: int):
        self.data = jnp.asarray(_VELOCITIES)
        self.num_components = num_components

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

    def posterior(self) -> Posterior:
        """Return the posterior of flat points, which starts at draws from the prior."""
        ones = jnp.ones(self.num_components)
        example = {
            "mean": _MEAN * ones,
            "variance": _RATE / _SHAPE * ones,
            "weight": ones / self.num_components,
        }
        labels = dict.fromkeys(example, 0) if self.num_components > 1 else None
        parameters = Parameters(
            example, exchangeable=labels, positive=["variance"], simplex=["weight"]
        )
        draw = eqx.filter_jit(lambda key: parameters.flatten(self.prior(key)))
        return Posterior(
            self.log_density,
            parameters,
            lambda key, num: jax.vmap(draw)(jr.split(key, num)),
        )

    def prior(self, key: Key) -> Tree:
        mean_key, variance_key, weight_key = jr.split(key, 3)
        num = self.num_components
        return {
            "mean": _MEAN + _SPREAD * jr.normal(mean_key, (num,)),
            "variance": _RATE / jr.gamma(variance_key, _SHAPE, (num,)),
            "weight": jr.dirichlet(weight_key, jnp.ones(num)),
        }

    def quantities(self, tree: Tree) -> Float[Array, " quantity"]:
        """Return numbers that do not depend on the labels."""
        order = jnp.argsort(tree["mean"])
        logs = jnp.log(tree["variance"]), jnp.log(tree["weight"])
        return jnp.concatenate([part[order] for part in (tree["mean"], *logs)])


class Reading(eqx.Module):
    """What is read off draws of a model, which are flat points."""

    model: Mixture
    posterior: Posterior

    def __init__(self, model: Mixture):
        self.model = model
        self.posterior = model.posterior()

    @eqx.filter_jit
    def quantities(self, points: Float[Array, "*n dim"]) -> Float[Array, "*n quantity"]:
        """Return numbers without labels, and the log density, of each draw."""

        def one(point):
            numbers = self.model.quantities(self.posterior.parameters.unflatten(point))
            return jnp.append(numbers, self.posterior.log_density(point))

        flat = jax.vmap(one)(points.reshape(-1, points.shape[-1]))
        return flat.reshape(*points.shape[:-1], -1)

    @eqx.filter_jit
    def means(self, points: Particles) -> Float[Array, "n component"]:
        """Return the mean of each component, as it is labelled."""
        return jax.vmap(self.posterior.parameters.unflatten)(points)["mean"]

    def effective_size(self, places: Float[Array, "record chain dim"]) -> float:
        """Return the least effective sample size of all numbers."""
        values = jnp.moveaxis(self.quantities(places), 0, 1)
        return float(np.min(summarize_chains(values)["bulk"]))


class Yardstick(eqx.Module):
    r"""The energy distance of draws to a reference that is averaged over its orbits.

    $$2 E|X - g Y| - E|X - X'| - E|Y - g Y'|$$

    with g uniform in the group. Expanded draws are averaged over their orbits as well.
    Distances are between standardized coordinates.

    Attributes:
        posterior: What is sampled.
        width: The unit of each coordinate, the same for those that are exchanged.
        reference: Draws.
        own: The mean distance between copies of them.
    """

    posterior: Posterior
    width: Point
    reference: Particles
    own: Scalar

    def __init__(self, posterior: Posterior, width: Point, reference: Particles):
        self.posterior = posterior
        self.width = width
        self.reference = reference
        self.own = self._orbit_distance(reference, reference)

    def __call__(self, points: Particles) -> dict[str, Scalar]:
        """Return the distance of points, and that of their orbits."""
        across = 2 * self._orbit_distance(self.reference, points) - self.own
        return {
            "energy_distance": across - self._distance(points, points),
            "expanded": across - self._orbit_distance(points, points),
        }

    @eqx.filter_jit
    def _distance(self, x: Float[Array, "n dim"], y: Float[Array, "m dim"]) -> Scalar:
        a, b = x / self.width[None], y / self.width[None]
        squares = jnp.sum(a**2, axis=1)[:, None] + jnp.sum(b**2, axis=1)[None]
        return jnp.mean(jnp.sqrt(jnp.maximum(squares - 2 * a @ b.T, 0)))

    @eqx.filter_jit
    def _orbit_distance(
        self, x: Float[Array, "n dim"], y: Float[Array, "m dim"]
    ) -> Scalar:
        """Return the mean distance of x and all copies of y."""
        group = self.posterior.group
        copy = lambda element: jax.vmap(group.act, (None, 0))(element, y)
        distance = lambda element: self._distance(x, copy(element))
        return jnp.mean(jax.lax.map(distance, group.elements()))
