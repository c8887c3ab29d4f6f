"""Langevin chains, unadjusted and Metropolis-adjusted: the baselines of SVGD."""

import dataclasses
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Int

from equistein._check_arguments import accept_integer_key, check_arguments
from equistein._numbers import check_integers, check_score_clip
from equistein._types import Key, LogDensity, Particles, Point, Scalar
from equistein.samplers._base import AbstractSampler
from equistein.samplers._geometric_path import GeometricPath, PathWalker
from equistein.samplers._markov_chains import (
    AbstractMarkovChains,
    ChainParameters,
    Move,
)
from equistein.samplers._steps import (
    check_projection,
    check_step_size,
    clip_norms,
    identity,
    inverse_temperature,
    langevin_update,
    rms,
    scale_steps,
    Schedule,
    StepSize,
)


class LangevinState(eqx.Module):
    """What the next step needs."""

    particles: Particles
    step: Int[Array, ""]


class LangevinInfo(eqx.Module):
    """What a step was like, before it moved the particles.

    The norms are root mean squares over the particles; `evaluations` is the number
    of score evaluations of a particle so far.
    """

    log_density: Scalar
    score_norm: Scalar
    update_norm: Scalar
    inverse_temperature: Scalar
    evaluations: Int[Array, ""]


@check_arguments
class Langevin(AbstractSampler[LangevinState, LangevinInfo]):
    r"""Move each particle along its score, with noise.

    $$x \leftarrow x + \eta \beta s(x) + \sqrt{2 \eta}\, \xi, \qquad
      \xi \sim \mathcal N(0, I)$$

    Equivariant in distribution under every rotation and permutation that the density
    has. Without the Metropolis correction the distribution is right up to the order of
    $\eta$.

    Args:
        step_size: The step $\eta > 0$, in squared units of the points: a number or a
            function of the step number.
        annealing: The inverse temperature $\beta$ as a function of the step number,
            such as `Geometric(1_000)`; 1 by default.
        score_clip: The largest norm of a point's score; longer ones are shortened.
        project: What puts a point onto the subspace the particles live on, such as the
            `project` of a `PointCloud`; by default they live everywhere.

    References:
        Roberts and Tweedie (1996), Exponential convergence of Langevin distributions.
    """

    step_size: StepSize
    _: dataclasses.KW_ONLY
    annealing: Schedule | None = None
    score_clip: float | Scalar | None = None
    project: Callable[[Point], Point] = eqx.field(default=identity)

    def __check_init__(self):
        check_step_size("Langevin", "step_size", self.step_size, zero=False)
        check_score_clip("Langevin", self.score_clip)

    def init(self, particles: Particles, log_density: LogDensity) -> LangevinState:
        """Build the state; the particles are projected."""
        del log_density
        return LangevinState(jax.vmap(self.project)(particles), jnp.zeros((), int))

    def scale_steps(self, factor: float | Scalar) -> "Langevin":
        return eqx.tree_at(
            lambda s: s.step_size, self, scale_steps(self.step_size, factor)
        )

    @accept_integer_key
    def step(
        self, key: Key, state: LangevinState, log_density: LogDensity
    ) -> tuple[LangevinState, LangevinInfo]:
        x = state.particles
        number = state.step.astype(x.dtype)
        beta = inverse_temperature(self.annealing, state.step, x.dtype)
        values, scores = jax.vmap(jax.value_and_grad(log_density))(x)
        scores = beta * clip_norms(scores, self.score_clip)
        update = langevin_update(key, number, scores, self.step_size)
        update = jax.vmap(self.project)(update)
        new = LangevinState(x + update, state.step + 1)
        info = LangevinInfo(jnp.mean(values), rms(scores), rms(update), beta, new.step)
        return new, info

    def check_shape(self, shape: tuple[int, ...]) -> None:
        check_projection("Langevin", self.project, shape)


@check_arguments
class MALA(AbstractMarkovChains):
    r"""Move each particle by Langevin proposals, accepted or not.

    $$y = x + \eta\, d(x) + \sqrt{2 \eta}\, \xi, \qquad d = \beta s, \qquad
      \xi \sim \mathcal N(0, I)$$

    accepted with the probability that leaves $p^\beta$ exactly invariant. For the first
    `num_adapt` steps $\eta$ moves so that `acceptance` of the proposals are accepted;
    then it stays, and the distribution is exact. One score evaluation a step.

    Args:
        step_size: The initial step size $\eta > 0$, in squared units of the points.
        num_adapt: The number of steps that adapt $\eta$.
        acceptance: The acceptance rate aimed at.
        annealing: The inverse temperature $\beta$ as a function of the steps taken;
            1 by default.
        score_clip: The largest norm of the drift d; longer ones are shortened in the
            proposal, and the distribution stays exact.
        project: What puts a point onto the subspace the particles live on.

    References:
        Roberts and Tweedie (1996), Exponential convergence of Langevin distributions,
        with the truncated drift; Roberts and Rosenthal (1998) for the acceptance rate.
    """

    step_size: float | Scalar
    _: dataclasses.KW_ONLY
    num_adapt: int | Int[Array, ""] = 0
    acceptance: float = 0.574
    annealing: Schedule | None = None
    score_clip: float | Scalar | None = None
    project: Callable[[Point], Point] = eqx.field(default=identity)

    def __check_init__(self):
        if isinstance(self.num_adapt, int):
            check_integers("MALA", 0, num_adapt=self.num_adapt)
        check_score_clip("MALA", self.score_clip)

    def parameters(self, particles: Particles) -> ChainParameters:
        size = jnp.full((), self.step_size, particles.dtype)
        return ChainParameters(jnp.log(size))

    @accept_integer_key
    def noise(self, key: Key, points: Particles) -> tuple[Particles, Array]:
        normal_key, uniform_key = jr.split(key)
        uniform = jr.uniform(uniform_key, points.shape[:1], points.dtype)
        return jr.normal(normal_key, points.shape, points.dtype), uniform

    def move(
        self,
        noise: tuple[Point, Scalar],
        path: GeometricPath,
        walker: PathWalker,
        beta: Scalar,
        parameters: ChainParameters,
    ) -> Move:
        def value_and_drift(walker):
            value, score = path.tempered(walker, beta)
            return value, self.project(clip_norms(score[None], self.score_clip)[0])

        normal, uniform = noise
        x, step_size = walker.point, jnp.exp(parameters.log_step_size)
        value, drift = value_and_drift(walker)
        shift = jnp.sqrt(2 * step_size) * self.project(normal)
        proposal = path.evaluate_raw(x + step_size * drift + shift)
        new_value, new_drift = value_and_drift(proposal)
        reverse = x - proposal.point - step_size * new_drift
        gap = jnp.sum(shift**2) - jnp.sum(reverse**2)
        log_ratio = new_value - value + gap / (4 * step_size)
        finite = jnp.isfinite(log_ratio)
        chance = jnp.where(finite, jnp.exp(jnp.minimum(log_ratio, 0)), 0)
        pick = lambda new, old: jnp.where(uniform < chance, new, old)
        walker = jax.tree.map(pick, proposal, walker)
        return walker, chance, jnp.ones((), int), ~jnp.isnan(new_value)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        check_projection("MALA", self.project, shape)
