"""Chains that an algorithm of BlackJAX moves."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from equistein._gate import keyed
from equistein._types import Key, LogDensity, Particles, Point, Scalar
from equistein.samplers._blackjax_algorithms import Algorithm
from equistein.samplers._blackjax_warm_up import warm_up
from equistein.samplers._coordinates import coordinates_on, SubspaceCoordinates
from equistein.samplers._geometric_path import Flat, GeometricPath, PathWalker
from equistein.samplers._markov_chains import AbstractMarkovChains
from equistein.samplers._metropolis import has_density, Walker
from equistein.samplers._scores import check_projection, rms
from equistein.samplers._when_due import when_due

_GAIN = 0.2  # of the step's logarithm, for a whole unit of acceptance
_NUM_CHAINS = 8  # of the warm-up


class BlackJAXParameters(eqx.Module):
    """What a warm-up finds; the matrix is one, or its diagonal, in coordinates."""

    log_step_size: Scalar
    inverse_mass_matrix: Float[Array, " coordinate"] | Float[Array, "row column"]


class BlackJAXState(eqx.Module):
    """What the next step needs; without values, it evaluates the density first.

    The scores are in coordinates of the subspace. `evaluations` counts those at each
    particle on average; those at all particles that make no whole one more are `rest`.
    """

    particles: Particles
    values: Float[Array, " particle"]
    scores: Float[Array, "particle coordinate"]
    has_values: Bool[Array, ""]
    parameters: BlackJAXParameters
    evaluations: Int[Array, ""]
    rest: Int[Array, ""]
    step: Int[Array, ""]


class BlackJAXInfo(eqx.Module):
    """What a step was like.

    The update's norm is a root mean square over the particles; `evaluations` counts
    those of the score so far, a particle on average, with the warm-up's, and
    `undefined` the moves of this step that went where the log density is NaN.
    """

    log_density: Scalar
    acceptance: Scalar
    update_norm: Scalar
    step_size: Scalar
    evaluations: Int[Array, ""]
    undefined: Int[Array, ""]


class BlackJAXChains(AbstractMarkovChains[BlackJAXState, BlackJAXInfo]):
    """Independent chains that BlackJAX moves; `from_blackjax` makes them."""

    algorithm: Algorithm
    num_warmup: int
    step_size: float | Scalar
    inverse_mass_matrix: Float[Array, "..."] | None
    acceptance: float
    project: Callable[[Point], Point]

    def init(self, particles: Particles) -> BlackJAXState:
        """Build the state; the particles are projected."""
        x = jax.vmap(self.project)(particles)
        none, no = jnp.zeros((), int), jnp.zeros((), bool)
        scores = jnp.zeros((len(x), self._coordinates(x.shape[1:]).dim), x.dtype)
        # The density is not known yet: the first step looks at it.
        values = jnp.zeros(len(x), x.dtype)
        return BlackJAXState(
            x, values, scores, no, self.parameters(x), none, none, none
        )

    def renewed(self, state: BlackJAXState, log_density: LogDensity) -> BlackJAXState:
        same = has_density(log_density, state.particles, state.values)
        return eqx.tree_at(lambda s: s.has_values, state, state.has_values & same)

    def scaled(self, factor: float | Scalar) -> "BlackJAXChains":
        """Return these chains with their first step size multiplied."""
        return eqx.tree_at(lambda s: s.step_size, self, self.step_size * factor)

    @keyed
    def step(
        self, key: Key, state: BlackJAXState, log_density: LogDensity
    ) -> tuple[BlackJAXState, BlackJAXInfo]:
        tune_key, key = jr.split(key)
        x, num = state.particles, len(state.particles)
        coordinates = self._coordinates(x.shape[1:])
        path, beta = GeometricPath(log_density, Flat()), jnp.ones((), x.dtype)
        density = _Within(path.at(beta), coordinates)
        z = jax.vmap(coordinates.of)(x)
        values, scores = when_due(
            ~state.has_values,
            lambda: jax.vmap(jax.value_and_grad(density))(z),
            (state.values, state.scores),
        )
        parameters, tuning = when_due(
            state.step == 0,
            lambda: self.tune(tune_key, path, x, beta, state.parameters),
            (state.parameters, jnp.zeros((), int)),
        )
        ends, chances, spent, defined = jax.vmap(
            lambda key, walker: self._transition(key, density, walker, parameters)
        )(jr.split(key, num), jax.vmap(Walker)(z, values, scores))
        moved = jnp.any(ends.point != z, axis=1).reshape(num, *[1] * (x.ndim - 1))
        new_x = jnp.where(moved, jax.vmap(coordinates.point)(ends.point), x)
        rest = state.rest + jnp.sum(spent)
        first = jnp.where(state.has_values, 0, 1)
        evaluations = state.evaluations + first + tuning + rest // num
        new = BlackJAXState(
            new_x, ends.value, ends.score, jnp.ones_like(state.has_values), parameters,
            evaluations, rest % num, state.step + 1,
        )  # fmt: skip
        info = BlackJAXInfo(
            jnp.mean(values), jnp.mean(chances), rms(new_x - x),
            jnp.exp(parameters.log_step_size), evaluations, jnp.sum(~defined),
        )  # fmt: skip
        return new, info

    def parameters(self, particles: Particles) -> BlackJAXParameters:
        dtype, mass = particles.dtype, self.inverse_mass_matrix
        if mass is None:
            mass = jnp.ones(self._coordinates(particles.shape[1:]).dim, dtype)
        log_step_size = jnp.log(jnp.full((), self.step_size, dtype))
        return BlackJAXParameters(log_step_size, mass.astype(dtype))

    @keyed
    def tune(
        self,
        key: Key,
        path: GeometricPath,
        particles: Particles,
        beta: Scalar,
        parameters: BlackJAXParameters,
    ) -> tuple[BlackJAXParameters, Int[Array, ""]]:
        """Warm up chains from some of the particles, which stay where they are."""
        if not self.num_warmup:
            return parameters, jnp.zeros((), int)
        num = len(particles)
        chosen = np.linspace(0, num - 1, min(num, _NUM_CHAINS)).astype(int)
        coordinates = self._coordinates(particles.shape[1:])
        density = _Within(path.at(beta), coordinates)

        points = jax.vmap(coordinates.of)(particles[chosen])
        step_size, mass, spent = warm_up(
            key, self.algorithm, density, points, jnp.exp(parameters.log_step_size),
            parameters.inverse_mass_matrix, self.num_warmup, self.acceptance,
        )  # fmt: skip
        found = BlackJAXParameters(jnp.log(step_size), mass)
        return found, -(-spent // num)

    @keyed
    def move(
        self,
        key: Key,
        path: GeometricPath,
        walker: PathWalker,
        beta: Scalar,
        parameters: BlackJAXParameters,
    ) -> tuple[PathWalker, Scalar, Int[Array, ""], Bool[Array, ""]]:
        coordinates = self._coordinates(walker.point.shape)
        value, score = path.tempered(walker, beta)
        start = Walker(coordinates.of(walker.point), value, coordinates.of(score))
        density = _Within(path.at(beta), coordinates)
        end, chance, spent, defined = self._transition(key, density, start, parameters)
        there = path.walker_at(coordinates.point(end.point))
        moved = jnp.any(end.point != start.point)
        moved = moved & jnp.isfinite(value) & jnp.isfinite(there.value)
        pick = lambda new, old: jnp.where(moved, new, old)
        return jax.tree.map(pick, there, walker), chance, spent + 1, defined

    def adapted(
        self, parameters: BlackJAXParameters, acceptance: Scalar
    ) -> BlackJAXParameters:
        longer = parameters.log_step_size + _GAIN * (acceptance - self.acceptance)
        return eqx.tree_at(lambda p: p.log_step_size, parameters, longer)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        check_projection("from_blackjax", self.project, shape)
        dim, mass = self._coordinates(shape).dim, self.inverse_mass_matrix
        if self.algorithm.kind.is_microcanonical and dim < 2:
            raise ValueError(
                f"blackjax.{self.algorithm.name} turns its velocity and needs at least "
                "two dimensions, but points have one."
            )
        if mass is not None and mass.shape not in ((dim,), (dim, dim)):
            raise ValueError(
                f"from_blackjax needs an `inverse_mass_matrix` of shape ({dim},) or "
                f"({dim}, {dim}), for the coordinates on the subspace of its points, "
                f"but got shape {mass.shape}."
            )

    def _coordinates(self, shape: tuple[int, ...]) -> SubspaceCoordinates:
        return coordinates_on("from_blackjax", self.project, shape)

    def _transition(self, key, density, walker, parameters):
        return self.algorithm.transition(
            key, density, walker, jnp.exp(parameters.log_step_size),
            parameters.inverse_mass_matrix,
        )  # fmt: skip


class _Within(eqx.Module):
    """A log density as a function of coordinates."""

    log_density: LogDensity
    coordinates: SubspaceCoordinates

    def __call__(self, z: Float[Array, " coordinate"]) -> Scalar:
        return self.log_density(self.coordinates.point(z))
