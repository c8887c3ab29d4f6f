"""Samplers made of algorithms of BlackJAX, and in its form."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from equistein._check_arguments import check_arguments
from equistein._extras import require
from equistein._numbers import check_integers
from equistein._types import Key, LogDensity, Particles, Point, Scalar
from equistein.kernels import Preconditioner
from equistein.samplers._base import AbstractSampler
from equistein.samplers._geometric_path import Flat, GeometricPath, PathWalker
from equistein.samplers._markov_chains import (
    AbstractMarkovChains,
    ChainParameters,
    Move,
)
from equistein.samplers._steps import check_projection, identity, Schedule

_OPTIONS = {  # the option of each algorithm's move, and its default
    "hmc": ("num_integration_steps", None),
    "nuts": ("max_num_doublings", 10),
    "adjusted_mclmc": ("integration_steps_params", (2,)),
}


class BlackJAXChains(AbstractMarkovChains):
    """Independent chains that BlackJAX moves; `from_blackjax` makes them."""

    algorithm: str
    options: dict[str, Any]
    step_size: float | Scalar | None
    acceptance: float
    project: Callable[[Point], Point]
    num_adapt: int | Int[Array, ""] | None = None
    annealing: Schedule | None = None

    def move(
        self,
        noise: Key,
        path: GeometricPath,
        walker: PathWalker,
        beta: Scalar,
        parameters: ChainParameters,
    ) -> Move:
        import blackjax
        from blackjax.mcmc.hmc import HMCState  # the state of all three algorithms

        shape, dtype = walker.point.shape, walker.point.dtype
        metric = parameters.metric or self._coordinates(shape)
        # BlackJAX moves z, from 0, in JAX's default precision.
        metric = jax.tree.map(lambda leaf: leaf.astype(float), metric)
        tempered = path.at(beta)

        def point(z):
            return walker.point + metric.push(z).reshape(shape).astype(dtype)

        kernel = getattr(blackjax, self.algorithm).build_kernel()
        value, score = path.tempered(walker, beta)
        pulled = metric.pull(score.ravel().astype(float))
        start = jnp.zeros_like(pulled)
        # BlackJAX's code does not run where a user sets these two to be strict.
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
            end, info = kernel(
                noise, HMCState(start, value.astype(float), pulled),  # type: ignore
                lambda z: tempered(point(z)).astype(float),
                step_size=jnp.exp(parameters.log_step_size).astype(float),
                inverse_mass_matrix=jnp.ones_like(start), **self.options,
            )  # fmt: skip
            rate = jnp.nan_to_num(jnp.asarray(info.acceptance_rate), posinf=0.0)
            if self.algorithm == "nuts":
                ends = info.trajectory_leftmost_state, info.trajectory_rightmost_state
            else:
                ends = (info.proposal,)
            undefined = [~(jnp.asarray(end.logdensity) < jnp.inf) for end in ends]
            spent = jnp.asarray(info.num_integration_steps).astype(int)
            if self.algorithm == "adjusted_mclmc":  # whose integrator takes two a step
                spent = 2 * spent
        if isinstance(path.reference, Flat):  # whose values are those of p
            zero, blank = jnp.zeros_like(value), jnp.zeros_like(walker.point)
            score = metric.pull_back(end.logdensity_grad).reshape(shape).astype(dtype)
            own = end.logdensity.astype(dtype) / beta
            there = PathWalker(point(end.position), zero, blank, own, score / beta)
        else:
            there, spent = path.evaluate(point(end.position)), spent + 1
        moved = jnp.any(end.position != start)
        moved = moved & jnp.isfinite(value) & jnp.isfinite(there.value)
        pick = lambda new, old: jnp.where(moved, new, old)
        walker = jax.tree.map(pick, there, walker)
        defined = ~jnp.any(jnp.stack(undefined))
        return walker, rate.astype(dtype), spent, defined

    def check_shape(self, shape: tuple[int, ...]) -> None:
        check_projection("from_blackjax", self.project, shape)
        dim = math.prod(shape)
        if self.project is not identity:
            dim = len(self._coordinates(shape).inverse)
        if self.algorithm == "adjusted_mclmc" and dim < 2:
            raise ValueError(
                f"blackjax.{self.algorithm} turns its velocity and needs at least two "
                "dimensions, but points have one."
            )

    def _coordinates(self, shape: tuple[int, ...]) -> Preconditioner:
        if self.project is identity:
            return Preconditioner.unit(jnp.zeros(math.prod(shape)))
        return Preconditioner.of_subspace(self.project, shape)


@check_arguments
def from_blackjax(
    algorithm: Any,
    *,
    step_size: float | Scalar | None = None,
    num_adapt: int | None = None,
    acceptance: float = 0.8,
    project: Callable[[Point], Point] = identity,
    **options: Any,
) -> BlackJAXChains:
    r"""Return a sampler whose chains an algorithm of BlackJAX moves.

    A step moves each particle once, by `blackjax.hmc`, `nuts` or `adjusted_mclmc`,
    which leave the density exactly invariant.

    As of `HMC`, the step size and a metric, in place of a mass matrix, are learned
    from all chains in the first `num_adapt` steps, and at each temperature of parallel
    tempering and sequential Monte Carlo.

    All evaluations of the score are counted: two a step of the integrator of
    `adjusted_mclmc`, and, as `inner`, one more a move.

    Args:
        algorithm: Such as `blackjax.nuts`.
        step_size: The step of the integrator, in units of the points, which then have
            no metric. By default it is learned.
        num_adapt: The number of steps that adapt the step size, and learn the metric;
            by default half of a run's, or none where a step size is given.
        acceptance: The acceptance rate aimed at.
        project: What puts a point onto the subspace that BlackJAX sees, linear and
            orthogonal.
        **options: `num_integration_steps` of `blackjax.hmc`, `max_num_doublings` of
            `blackjax.nuts` (10), or `integration_steps_params` of
            `blackjax.adjusted_mclmc`: (2,).

    References:
        Cabezas et al. (2024), BlackJAX: composable Bayesian inference in JAX; Hoffman
        and Gelman (2014), The No-U-Turn Sampler; Robnik, Cohn-Gordon and Seljak (2025),
        Metropolis adjusted microcanonical Hamiltonian Monte Carlo.
    """
    if num_adapt is not None:
        check_integers("from_blackjax", 0, num_adapt=num_adapt)
    blackjax = require("blackjax", "BlackJAX", "bayes")
    known = [name for name in _OPTIONS if algorithm is getattr(blackjax, name)]
    if not known:
        raise ValueError(
            f"from_blackjax needs one of {', '.join(f'blackjax.{n}' for n in _OPTIONS)}"
            f", itself and not what it returns for a density, but got {algorithm!r}."
        )
    (name,) = known
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
        step_size=step_size,
        acceptance=float(acceptance),
        project=project,
        num_adapt=num_adapt,
    )


@check_arguments
def as_blackjax(sampler: AbstractSampler, log_density: LogDensity) -> Any:
    """Return a sampler as a `blackjax.base.SamplingAlgorithm`, of all particles."""
    from blackjax.base import SamplingAlgorithm

    def init(position: Particles, rng_key: Any = None):  # none starts at random
        return sampler.init(position, log_density)

    def step(rng_key, state):
        return sampler.step(rng_key, state, log_density)

    return SamplingAlgorithm(init, step)  # type: ignore
