"""Samplers made of algorithms of BlackJAX, and in its form."""

import math
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int

from equistein._check_arguments import accept_integer_key, check_arguments
from equistein._numbers import check_integers
from equistein._products import matmul
from equistein._types import Key, LogDensity, Particles, Point, Scalar
from equistein.samplers._base import AbstractSampler
from equistein.samplers._geometric_path import Flat, GeometricPath, PathWalker
from equistein.samplers._markov_chains import (
    AbstractMarkovChains,
    ChainParameters,
    Move,
)
from equistein.samplers._steps import check_projection, identity, Schedule

_TOLERANCE = 1e-4  # of a projection in single precision


class Coordinates(eqx.Module):
    r"""Coordinates z of points $x = B z$, B an orthonormal basis of a subspace.

    Lengths, volumes and normal distributions are those of the subspace. Without a basis
    it is the whole space. Coordinates have JAX's default precision, points their own.
    """

    basis: Float[Array, "size coordinate"] | None
    shape: tuple[int, ...] = eqx.field(static=True)
    dtype: Any = eqx.field(static=True)

    @property
    def dim(self) -> int:
        return math.prod(self.shape) if self.basis is None else self.basis.shape[1]

    def of(self, point: Point) -> Float[Array, " coordinate"]:
        r"""Return $B^\top x$: the coordinates of a point, or of a score."""
        flat = point.ravel().astype(float)
        return flat if self.basis is None else matmul(flat, self.basis)

    def point(self, coordinates: Float[Array, " coordinate"]) -> Point:
        """Return the point $B z$."""
        if self.basis is not None:
            coordinates = matmul(self.basis, coordinates)
        return coordinates.reshape(self.shape).astype(self.dtype)

    def density(self, log_density: LogDensity) -> LogDensity:
        """Return a log density of points as one of coordinates."""
        return lambda z: log_density(self.point(z)).astype(float)


def coordinates_on(
    project: Callable[[Point], Point], shape: tuple[int, ...], dtype: Any
) -> Coordinates:
    """Return coordinates on the subspace that points of this shape are projected on.

    Raises `ValueError` if the projection is not linear and orthogonal.
    """
    if project is identity:
        return Coordinates(None, shape, dtype)
    size = math.prod(shape)
    # The subspace's dimension is a shape, so the basis cannot be traced.
    with jax.ensure_compile_time_eval():
        matrix = np.asarray(jax.jacfwd(project)(jnp.zeros(shape)), float)
        probe = np.linspace(-1.0, 2.0, size)
        image = np.ravel(project(jnp.asarray(probe.reshape(shape), float)))
    matrix = matrix.reshape(size, size)
    values, vectors = np.linalg.eigh(matrix)
    basis = vectors[:, values > 0.5]
    gaps = matrix - basis @ basis.T, image - matrix @ probe
    if not basis.shape[1] or not all(np.max(np.abs(g)) < _TOLERANCE for g in gaps):
        raise ValueError(
            "from_blackjax needs a `project` that is a linear orthogonal projection, "
            "as the one that moves the center of mass to the origin, but got "
            f"{project!r}."
        )
    return Coordinates(jnp.asarray(basis, float), shape, dtype)


_OPTIONS = {  # the option of each algorithm's move, and its default
    "hmc": ("num_integration_steps", None),
    "nuts": ("max_num_doublings", 10),
    "adjusted_mclmc": ("integration_steps_params", (2,)),
}
_NUM_WARMUP = 500  # by default
_FEWEST = 10  # steps of a warm-up
_NUM_CHAINS = 8  # of the warm-up


class BlackJAXChains(AbstractMarkovChains):
    """Independent chains that BlackJAX moves; `from_blackjax` makes them."""

    algorithm: str
    options: dict[str, Any]
    num_warmup: int
    step_size: float | Scalar | None
    acceptance: float
    project: Callable[[Point], Point]
    num_adapt: int | Int[Array, ""] | None = 0  # the warm-up does it
    annealing: Schedule | None = None

    def parameters(
        self, particles: Particles, learns_metric: bool = False
    ) -> ChainParameters:
        del learns_metric  # the warm-up finds a mass matrix
        dtype = particles.dtype
        mass = jnp.ones(self._coordinates(particles[0]).dim, dtype)
        return ChainParameters(jnp.log(jnp.asarray(self.step_size, dtype)), mass)

    @accept_integer_key
    def tune(
        self,
        key: Key,
        path: GeometricPath,
        particles: Particles,
        beta: Scalar,
        parameters: ChainParameters,
    ) -> tuple[ChainParameters, Int[Array, ""]]:
        """Warm up chains from some of the particles, which stay where they are.

        Stan's warm-up of each for three quarters of the steps, then dual averaging of
        one step size for all, with the mean of their inverse mass matrices.
        """
        if not self.num_warmup:
            return parameters, jnp.zeros((), int)
        import blackjax
        from blackjax.adaptation.step_size import dual_averaging_adaptation
        from blackjax.mcmc import hmc

        size, mass = _in_default_precision(parameters)
        coordinates, kernel = self._coordinates(particles[0]), self._kernel()
        density = coordinates.density(path.at(beta))
        chosen = np.linspace(0, len(particles) - 1, min(len(particles), _NUM_CHAINS))
        points = jax.vmap(coordinates.of)(particles[chosen.astype(int)])
        num, first = len(points), 3 * self.num_warmup // 4
        warm_up: Any = blackjax.window_adaptation(
            types.SimpleNamespace(init=hmc.init, build_kernel=lambda: kernel), density,
            initial_inverse_mass_matrix=mass, initial_step_size=size,  # type: ignore
            target_acceptance_rate=self.acceptance,
            adaptation_info_fn=lambda state, info, adapted: self._evaluations(info),
        )  # fmt: skip
        begin, update, end = dual_averaging_adaptation(self.acceptance)
        first_key, key = jr.split(key)
        with _lenient():
            (states, found), spent = jax.vmap(
                lambda key, point: warm_up.run(key, point, first)
            )(jr.split(first_key, num), points)
            mass = jnp.mean(found["inverse_mass_matrix"], axis=0)
            # The median: a chain that starts far out may end with any step.
            size = jnp.exp(jnp.nanmedian(jnp.log(found["step_size"])))

            def step(carry, key):
                states, average = carry
                size = jnp.exp(average.log_step_size)
                states, info = jax.vmap(
                    lambda key, state: kernel(key, state, density, size, mass)
                )(jr.split(key, num), states)
                rate = jnp.mean(jnp.nan_to_num(info.acceptance_rate))
                return (states, update(average, rate)), self._evaluations(info)

            (_, average), more = jax.lax.scan(
                step, (states, begin(size)), jr.split(key, self.num_warmup - first)
            )
            tuned = ChainParameters(jnp.log(end(average)), mass)
        tuned = jax.tree.map(lambda x: x.astype(particles.dtype), tuned)
        return tuned, -(-(num + jnp.sum(spent) + jnp.sum(more)) // len(particles))

    def move(
        self,
        noise: Key,
        path: GeometricPath,
        walker: PathWalker,
        beta: Scalar,
        parameters: ChainParameters,
    ) -> Move:
        from blackjax.mcmc.hmc import HMCState  # the state of all three algorithms

        coordinates = self._coordinates(walker.point)
        value, score = path.tempered(walker, beta)
        start = coordinates.of(walker.point)
        values: Any = value.astype(float), coordinates.of(score)
        state = HMCState(start, *values)
        with _lenient():
            end, info = self._kernel()(
                noise, state, coordinates.density(path.at(beta)),
                *_in_default_precision(parameters),
            )  # fmt: skip
            rate = jnp.nan_to_num(jnp.asarray(info.acceptance_rate), posinf=0.0)
            ends = (
                (info.trajectory_leftmost_state, info.trajectory_rightmost_state)
                if self.algorithm == "nuts"
                else (info.proposal,)
            )
            undefined = [jnp.isnan(jnp.asarray(end.logdensity)) for end in ends]
            spent = self._evaluations(info)
        point = coordinates.point(end.position)
        if isinstance(path.reference, Flat):  # whose values are those of p
            zero, blank = jnp.zeros_like(value), jnp.zeros_like(point)
            score = coordinates.point(end.logdensity_grad) / beta
            end_value = end.logdensity.astype(value.dtype) / beta
            there = PathWalker(point, zero, blank, end_value, score)
        else:
            there, spent = path.evaluate(point), spent + 1
        moved = jnp.any(end.position != start)
        moved = moved & jnp.isfinite(value) & jnp.isfinite(there.value)
        pick = lambda new, old: jnp.where(moved, new, old)
        walker = jax.tree.map(pick, there, walker)
        defined = ~jnp.any(jnp.stack(undefined))
        return walker, rate.astype(value.dtype), spent, defined

    def check_shape(self, shape: tuple[int, ...]) -> None:
        check_projection("from_blackjax", self.project, shape)
        dim = coordinates_on(self.project, shape, float).dim
        if self.algorithm == "adjusted_mclmc" and dim < 2:
            raise ValueError(
                f"blackjax.{self.algorithm} turns its velocity and needs at least two "
                "dimensions, but points have one."
            )

    def _coordinates(self, point: Point) -> Coordinates:
        return coordinates_on(self.project, point.shape, point.dtype)

    def _kernel(self) -> Callable[..., tuple[Any, Any]]:
        """Return BlackJAX's function for a move."""
        import blackjax

        kernel = getattr(blackjax, self.algorithm).build_kernel()
        return lambda key, state, density, step_size, inverse_mass_matrix: kernel(
            key, state, density, step_size=step_size,
            inverse_mass_matrix=inverse_mass_matrix, **self.options,
        )  # fmt: skip

    def _evaluations(self, info: Any) -> Int[Array, "*chain"]:
        """Return those of the score that a move took."""
        # McLachlan's integrator evaluates it twice a step, velocity Verlet once.
        each = 2 if self.algorithm == "adjusted_mclmc" else 1
        return each * jnp.asarray(info.num_integration_steps).astype(int)


def _in_default_precision(parameters: ChainParameters) -> tuple[Scalar, Array]:
    """Return the step size and the inverse mass matrix as BlackJAX needs them."""
    step_size = jnp.exp(parameters.log_step_size)
    return step_size.astype(float), parameters.inverse_mass_matrix.astype(float)


@contextmanager
def _lenient() -> Iterator[None]:
    """Allow BlackJAX's code what it needs of JAX."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


@check_arguments
def from_blackjax(
    algorithm: Any,
    *,
    num_warmup: int | None = None,
    step_size: float | Scalar | None = None,
    acceptance: float = 0.8,
    project: Callable[[Point], Point] = identity,
    **options: Any,
) -> BlackJAXChains:
    r"""Return a sampler whose chains an algorithm of BlackJAX moves.

    A step moves each particle once, by `blackjax.hmc`, `nuts` or `adjusted_mclmc`,
    which leave the density exactly invariant.

    In the first step Stan's warm-up (`blackjax.window_adaptation`) runs eight chains
    from as many of the particles, to find a step size and a diagonal inverse mass
    matrix for all. Parallel tempering does so at each temperature, sequential Monte
    Carlo at the first, and both adapt the step size further.

    All evaluations of the score are counted: two a step of the integrator of
    `adjusted_mclmc`, and, as `inner`, one more a move.

    Args:
        algorithm: Such as `blackjax.nuts`.
        num_warmup: The number of steps of the warm-up; 0 for none. By default 500, or
            0 where `step_size` is given.
        step_size: The step of the integrator, or where the warm-up begins (1).
        acceptance: The rate of acceptance that the warm-up aims at.
        project: What puts a point onto the subspace that BlackJAX sees, linear and
            orthogonal.
        **options: `num_integration_steps` of `blackjax.hmc`, `max_num_doublings` of
            `blackjax.nuts` (10), or `integration_steps_params` of
            `blackjax.adjusted_mclmc`: (2,).

    Raises:
        ValueError: If the algorithm is none of these, or an argument is out of range.
        ImportError: If BlackJAX is not installed.

    References:
        Cabezas et al. (2024), BlackJAX: composable Bayesian inference in JAX; Hoffman
        and Gelman (2014), The No-U-Turn Sampler; Robnik, Cohn-Gordon and Seljak (2025),
        Metropolis adjusted microcanonical Hamiltonian Monte Carlo.
    """
    if num_warmup is None:
        num_warmup = _NUM_WARMUP if step_size is None else 0
    if num_warmup != 0:
        check_integers("from_blackjax", _FEWEST, num_warmup=num_warmup)
    elif step_size is None:
        raise ValueError(
            "from_blackjax needs `step_size` where there is no warm-up to find it."
        )
    name = _name_of(algorithm)
    option, default = _OPTIONS[name]
    if options.keys() - {option} or (default is None and not options):
        raise ValueError(
            f"from_blackjax(blackjax.{name}, ...) takes the option `{option}`"
            f"{', which it needs' if default is None else ''}, but got "
            f"{', '.join(sorted(options)) or 'none'}."
        )
    return BlackJAXChains(
        algorithm=name,
        options={option: default} | options,
        num_warmup=num_warmup,
        step_size=1.0 if step_size is None else step_size,
        acceptance=float(acceptance),
        project=project,
    )


def _name_of(algorithm: Any) -> str:
    """Return BlackJAX's name of one of the algorithms that are taken."""
    try:
        import blackjax
    except ImportError as error:
        raise ImportError(
            "from_blackjax needs BlackJAX: pip install 'equistein[bayes]'."
        ) from error

    for name in _OPTIONS:
        if algorithm is getattr(blackjax, name):
            return name
    names = ", ".join(f"blackjax.{name}" for name in _OPTIONS)
    raise ValueError(
        f"from_blackjax needs one of {names}, itself and not what it returns for a "
        f"density, but got {algorithm!r}."
    )


@check_arguments
def as_blackjax(sampler: AbstractSampler, log_density: LogDensity) -> Any:
    """Return a sampler as a `blackjax.base.SamplingAlgorithm`, of all particles."""
    from blackjax.base import SamplingAlgorithm

    def init(position: Particles, rng_key: Any = None):
        del rng_key  # no sampler here starts at random
        return sampler.init(position, log_density)

    def step(rng_key, state):
        return sampler.step(rng_key, state, log_density)

    return SamplingAlgorithm(init, step)  # type: ignore
