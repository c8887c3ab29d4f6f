"""How far draws are from a reference, whose labels mean nothing."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein._types import Particles, Point, Scalar
from equistein.diagnostics import effective_sample_size
from equistein.experiments.posteriors._model import AbstractModel
from equistein.metrics import proportions
from equistein.posteriors import Posterior

_NUM_RANDOM = 64  # elements for each point, of a group too large


class Yardstick(eqx.Module):
    r"""The energy distance of draws to a reference that is averaged over its orbits.

    $$2 E|X - g Y| - E|X - X'| - E|Y - g Y'|$$

    with g uniform in the group: exactly, or by random elements for each point where the
    group is large. Expanded draws are averaged over their orbits as well. Distances are
    between standardized coordinates, and on the circle for those that come again.

    Attributes:
        posterior: What is sampled.
        width: The unit of each coordinate, the same for those that are exchanged.
        reference: Draws.
        own: The mean distance between copies of them.
        most_elements: Those of a group that is not too large.
    """

    posterior: Posterior
    width: Point
    reference: Particles
    own: Scalar
    most_elements: int

    def __init__(
        self,
        posterior: Posterior,
        width: Point,
        reference: Particles,
        most_elements: int,
    ):
        self.posterior = posterior
        self.width = width
        self.reference = reference
        self.most_elements = most_elements
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
        a, b = self._features(x), self._features(y)
        squares = jnp.sum(a**2, axis=1)[:, None] + jnp.sum(b**2, axis=1)[None]
        return jnp.mean(jnp.sqrt(jnp.maximum(squares - 2 * a @ b.T, 0)))

    def _features(self, points: Particles) -> Float[Array, "n feature"]:
        periodic = self.posterior.parameters.periodic
        points = points / self.width[None]
        return (
            points
            if periodic is None
            else jnp.concatenate([*periodic.embed(points)], axis=1)
        )

    @eqx.filter_jit
    def _orbit_distance(
        self, x: Float[Array, "n dim"], y: Float[Array, "m dim"]
    ) -> Scalar:
        """Return the mean distance of x and all, or many, copies of y."""
        group = self.posterior.group
        if group.order and group.order <= self.most_elements:
            over, move = group.elements(), jax.vmap(group.act, (None, 0))
            copy = lambda element: move(element, y)
        else:
            over, move = jr.split(jr.key(0), _NUM_RANDOM), jax.vmap(group.act)
            copy = lambda key: move(group.sample(key, len(y)), y)
        return jnp.mean(jax.lax.map(lambda item: self._distance(x, copy(item)), over))


class Reading(eqx.Module):
    """What is read off draws of a model, which are flat points."""

    model: AbstractModel
    posterior: Posterior

    @eqx.filter_jit
    def quantities(self, points: Float[Array, "*n dim"]) -> Float[Array, "*n quantity"]:
        """Return numbers without labels, and the log density, of each draw."""

        def one(point):
            numbers = self.model.quantities(self.posterior.parameters.unflatten(point))
            return jnp.append(numbers, self.posterior.log_density(point))

        flat = jax.vmap(one)(points.reshape(-1, points.shape[-1]))
        return flat.reshape(*points.shape[:-1], -1)

    @eqx.filter_jit
    def components(self, points: Particles) -> Float[Array, "n component"]:
        """Return a number of each component, as it is labelled."""
        trees = jax.vmap(self.posterior.parameters.unflatten)(points)
        return jax.vmap(self.model.components)(trees)

    @eqx.filter_jit
    def numbers(self, points: Particles) -> dict[str, Scalar]:
        """Return how unequal the copies are, and the model's own metrics."""
        trees = jax.vmap(self.posterior.parameters.unflatten)(points)
        num = self.model.num_copies
        weights = proportions(jax.vmap(self.model.copy)(trees), num)
        error = jnp.max(jnp.abs(weights - 1 / num))
        return {"copy_error": error} | self.model.scores(trees)

    def coverage(self, points: Particles) -> dict[str, float]:
        """Return the fraction of the true numbers inside central 98 % intervals."""
        truth = self.model.truth()
        if truth is None:
            return {}
        found = np.asarray(self.quantities(points))[:, : len(truth)]
        low, high = np.quantile(found, [0.01, 0.99], axis=0)
        inside = (low <= np.asarray(truth)) & (np.asarray(truth) <= high)
        return {"truth_covered": float(np.mean(inside))}

    def effective_size(self, places: Float[Array, "record chain dim"]) -> float:
        """Return the least effective sample size of all numbers."""
        values = jnp.moveaxis(self.quantities(places), (0, 1, 2), (2, 1, 0))
        return float(np.min([effective_sample_size(each) for each in values]))
