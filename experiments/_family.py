"""Planar densities that are known, and those of a family likeliest to give points."""

import dataclasses
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from equistein.energies import AbstractEnergy
from equistein.groups import AbstractGroup
from equistein.models import Model
from equistein.targets import RotatedGaussians, Shells
from equistein.training import AbstractNegatives, adam
from experiments._types import Key, Particles, Point, Scalar

LogDensities = Callable[[Point], Float[Array, " density"]]
"""The log densities of all points, and of those of each class, up to constants."""


def log_densities_of(energy: AbstractEnergy) -> LogDensities:
    r"""Return those of an energy: $-E(x)$, and $-E(x) + \log p(y|x)$ of each class."""

    def log_densities(point: Point) -> Float[Array, " density"]:
        found = energy.evaluate(point)
        of_all = -found.energy[None]
        if found.logits is None:
            return of_all
        return jnp.append(of_all, of_all + jax.nn.log_softmax(found.logits))

    return log_densities


@dataclasses.dataclass(frozen=True)
class Plane:
    """A square grid.

    Attributes:
        reach: Half the side of the square.
        num: The number of points along a side.
    """

    reach: float
    num: int

    def values(self, log_densities: LogDensities) -> Float[Array, "num num density"]:
        """Return log densities at the points of the grid."""
        ticks = jnp.linspace(-self.reach, self.reach, self.num)
        points = jnp.stack(jnp.meshgrid(ticks, ticks), axis=-1)
        return jax.vmap(jax.vmap(log_densities))(points)

    def log_normalizers(self, log_densities: LogDensities) -> Float[Array, " density"]:
        """Return the logs of the integrals over the square, by the midpoint rule."""
        side = 2 * self.reach / (self.num - 1)
        return logsumexp(self.values(log_densities), axis=(0, 1)) + 2 * jnp.log(side)


def held_out_likelihood(
    plane: Plane, points: Particles, energy: AbstractEnergy
) -> dict[str, Scalar]:
    """Return the log-likelihood of held-out points, which is followed in a fit."""
    normalizer = plane.log_normalizers(log_densities_of(energy))[0]
    mean = jnp.mean(jax.vmap(energy.log_density)(points))
    return {"log_likelihood": mean - normalizer}


@dataclasses.dataclass(frozen=True)
class KnownDensity:
    """A density that is known.

    Attributes:
        log_densities: Normalized ones, of all and of each class.
        samples: From a key and a number, samples of all, and of each class.
    """

    log_densities: LogDensities
    samples: Callable[[Key, int], list[Particles]]


def law_of_shells(shells: Sequence[Shells], weights: Sequence[float]) -> KnownDensity:
    """Return a mixture of single shells with weights."""

    def log_densities(point: Point) -> Float[Array, " density"]:
        parts = [shell.log_density(point) - shell.log_normalizer for shell in shells]
        logs = jnp.log(jnp.asarray(weights, point.dtype))
        return logsumexp(jnp.stack(parts).astype(point.dtype) + logs)[None]

    def samples(key: Key, num: int) -> list[Particles]:
        which_key, *keys = jr.split(key, 1 + len(shells))
        pairs = zip(shells, keys, strict=True)
        drawn = jnp.stack([shell.sample(key, num) for shell, key in pairs])
        chances = jnp.log(jnp.asarray(weights, drawn.dtype))
        which = jr.categorical(which_key, chances, shape=(num,))
        return [drawn[which, jnp.arange(num)]]

    return KnownDensity(log_densities, samples)


def likeliest_gaussians(
    group: AbstractGroup, near: Point, points: Particles
) -> RotatedGaussians:
    """Return the copies of a Gaussian that are likeliest to give some points.

    Its mean and covariance are those of the points, each moved by the group to where it
    is nearest to `near`: exact as far as the copies do not overlap.
    """
    orbits = jax.vmap(group.orbit)(points)
    nearest = jnp.argmin(jnp.sum((orbits - near[None, None]) ** 2, axis=-1), axis=1)
    moved = np.asarray(orbits[jnp.arange(len(points)), nearest], np.float64)
    mean, covariance = moved.mean(axis=0), np.cov(moved.T, bias=True)
    return RotatedGaussians(group, jnp.asarray(mean), jnp.asarray(covariance))


def likeliest_shell(points: Particles) -> Shells:
    r"""Return the circle that is likeliest to give some points of the plane.

    Of a narrow one $\log p(x) = \log \mathcal N(\rho; r, w^2) - \log 2 \pi r$ with
    $\rho = |x|$, which is largest where $r^2 - \bar\rho\, r + w^2 = 0$ and $w^2$ is the
    mean of $(\rho - r)^2$.
    """
    distances = np.linalg.norm(np.asarray(points, np.float64), axis=1)
    mean = radius = distances.mean()
    squared = distances.var()
    for _ in range(50):
        radius = (mean + np.sqrt(max(mean**2 - 4 * squared, 0))) / 2
        squared = np.mean((distances - radius) ** 2)
    return Shells((float(radius),), float(np.sqrt(squared)), points.shape[1])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Algorithm1:
    """What the paper's Algorithm 1 has beside the library's settings.

    Attributes:
        repel: Whether the data of a batch repels the particles.
        tolerance: The update below which a batch's steps end; None takes all.
        step_epochs: The epochs from which on the sampler's steps are multiplied.
        step_factors: By what, compared with the start.
        learning_rate_epochs: The same for the learning rate; none is a cosine.
        learning_rate_factors: By what, compared with the start.
    """

    repel: bool = False
    tolerance: float | None = None
    step_epochs: tuple[int, ...] = ()
    step_factors: tuple[float, ...] = ()
    learning_rate_epochs: tuple[int, ...] = ()
    learning_rate_factors: tuple[float, ...] = ()

    def __post_init__(self):
        """Raise `ValueError` for epochs and factors that do not match."""
        for name in ("step", "learning_rate"):
            epochs, factors = (
                getattr(self, f"{name}_{part}") for part in ("epochs", "factors")
            )
            if len(epochs) != len(factors) or list(epochs) != sorted(set(epochs)):
                raise ValueError(
                    f"`{name}_epochs` must rise, with as many `{name}_factors`, but "
                    f"got {epochs!r} and {factors!r}."
                )

    def applied(self, model: Model, learning_rate: float) -> Model:
        """Return a model that is trained so."""
        if self == Algorithm1():
            return model
        batches = model.epoch_batches
        step_factor = optax.join_schedules(
            [optax.constant_schedule(factor) for factor in (1.0, *self.step_factors)],
            [epoch * batches for epoch in self.step_epochs],
        )

        def changed(part):
            if not isinstance(part, AbstractNegatives):
                return part
            return dataclasses.replace(
                part, repel=self.repel, tolerance=self.tolerance,
                step_factor=step_factor,
            )  # type: ignore[call-arg]  # fmt: skip

        objective = jax.tree.map(
            changed, model.objective,
            is_leaf=lambda part: isinstance(part, AbstractNegatives),
        )  # fmt: skip
        rates = zip(self.learning_rate_epochs, self.learning_rate_factors, strict=True)
        factors = {epoch * batches: factor for epoch, factor in rates}
        optimizer = adam(
            learning_rate, model.num_epochs * batches, factors=factors or None
        )
        optimization = dataclasses.replace(model.optimization, optimizer=optimizer)
        return dataclasses.replace(
            model, objective=objective, optimization=optimization
        )
