"""Langevin chains, unadjusted and Metropolis-adjusted: the baselines of SVGD."""

import dataclasses
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from equistein._check_arguments import accept_integer_key, check_arguments
from equistein._numbers import check_score_clip
from equistein._types import Key, LogDensity, Particles, Point, Scalar
from equistein.samplers._base import AbstractSampler
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
    """What a step was like, before it moved the particles."""

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
        return LangevinState(jax.vmap(self.project)(particles), jnp.zeros((), int))

    def scale_steps(self, factor: float | Scalar) -> "Langevin":
        return dataclasses.replace(self, step_size=scale_steps(self.step_size, factor))

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
