"""Metropolis-adjusted Langevin: exact independent chains, the baseline of SVGD."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Int

from equistein._types import Key, LogDensity, Particles, Point, Scalar
from equistein.samplers._base import AbstractSampler
from equistein.samplers._scores import (
    check_annealing,
    inverse_temperature,
    refuse_repellers,
    rms,
    Schedule,
)
from equistein.targets import langevin_move, Walker, walker_at

_GAIN = 0.2  # of the step's logarithm, for a whole unit of acceptance


class MALAState(eqx.Module):
    """What the next step needs. The chains are independent: there are no repellers."""

    particles: Particles
    values: Float[Array, " particle"]
    scores: Float[Array, "particle *shape"]
    log_step_size: Scalar
    step: Int[Array, ""]
    repellers: None = None


class MALAInfo(eqx.Module):
    """What a step was like.

    The update's norm is a root mean square over the particles.
    """

    log_density: Scalar
    acceptance: Scalar
    update_norm: Scalar
    step_size: Scalar
    inverse_temperature: Scalar


class MALA(AbstractSampler[MALAState, MALAInfo]):
    r"""Move each particle by Langevin proposals, accepted or not.

    $$y = x + \eta \beta s(x) + \sqrt{2 \eta}\, \xi, \qquad
      \xi \sim \mathcal N(0, I)$$

    accepted with the probability that leaves $p^\beta$ exactly invariant. For the first
    `num_adapt` steps $\eta$ moves so that `acceptance` of the proposals are accepted,
    counted over all particles; afterwards it stays, and the law is exact. Run it from
    the particles of another sampler to correct them. One score evaluation a step: the
    state keeps the density at its particles, so go on with another density from
    `samples.particles`, not from the state.

    Args:
        step_size: The first step $\eta > 0$, in squared units of the points.
        num_adapt: The number of steps that adapt $\eta$.
        acceptance: The acceptance rate aimed at.
        annealing: The inverse temperature $\beta$ as a function of the step number;
            1 by default.
        score_clip: The largest norm of the drift's $\beta s$; longer ones are shortened
            in the proposal, which lets particles come down from overlaps. The law stays
            exact.
        project: What puts a point onto the subspace the particles live on.

    Raises:
        ValueError: If an argument is out of range.

    References:
        Roberts and Rosenthal (1998), Optimal scaling of discrete approximations to
        Langevin diffusions, for the acceptance rate.
    """

    step_size: float
    num_adapt: int | Scalar
    acceptance: float
    annealing: Schedule | None
    score_clip: float | None
    project: Callable[[Point], Point]

    def __init__(
        self,
        step_size: float,
        *,
        num_adapt: int | Int[Array, ""] = 0,
        acceptance: float = 0.574,
        annealing: Schedule | None = None,
        score_clip: float | None = None,
        project: Callable[[Point], Point] = lambda point: point,
    ):
        if not 0 < step_size < float("inf") or not 0 < acceptance < 1:
            raise ValueError(
                "MALA needs `step_size` > 0 and 0 < `acceptance` < 1, but got "
                f"step_size={step_size!r} and acceptance={acceptance!r}."
            )
        if isinstance(num_adapt, int) and num_adapt < 0:
            raise ValueError(f"MALA needs `num_adapt` >= 0, but got {num_adapt!r}.")
        check_annealing("MALA", annealing)
        if score_clip is not None and not score_clip > 0:
            raise ValueError(f"MALA needs `score_clip` > 0, but got {score_clip!r}.")
        self.step_size = float(step_size)
        self.num_adapt = num_adapt
        self.acceptance = float(acceptance)
        self.annealing = annealing
        self.score_clip = score_clip
        self.project = project

    def init(
        self,
        particles: Particles,
        *,
        repellers: Float[Array, "repeller *shape"] | None = None,
    ) -> MALAState:
        """Build the state.

        Args:
            particles: The start; it is projected.
            repellers: None: independent chains repel nothing.

        Raises:
            ValueError: If there are repellers.
        """
        refuse_repellers("MALA", repellers)
        x = jax.vmap(self.project)(particles)
        size = jnp.log(jnp.full((), self.step_size, x.dtype))
        # The density is not known yet: the first step looks at it.
        values = jnp.zeros(len(x), x.dtype)
        return MALAState(x, values, jnp.zeros_like(x), size, jnp.zeros((), int))

    def step(
        self, key: Key, state: MALAState, log_density: LogDensity
    ) -> tuple[MALAState, MALAInfo]:
        x = state.particles
        beta = inverse_temperature(self.annealing, state.step, x.dtype)
        walkers = jax.lax.cond(
            state.step == 0,
            lambda: jax.vmap(lambda point: walker_at(log_density, point))(x),
            lambda: jax.vmap(Walker)(x, state.values, state.scores),
        )
        size = jnp.exp(state.log_step_size)

        def move(key, walker):
            return langevin_move(
                key, log_density, walker, beta, size, self.project, self.score_clip
            )

        moved, chances = jax.vmap(move)(jr.split(key, len(x)), walkers)
        rate = jnp.mean(chances)
        gain = jnp.where(
            state.step < self.num_adapt, _GAIN * (rate - self.acceptance), 0
        )
        info = MALAInfo(jnp.mean(walkers.value), rate, rms(moved.point - x), size, beta)
        new = MALAState(
            moved.point, moved.value, moved.score,
            state.log_step_size + gain, state.step + 1,
        )  # fmt: skip
        return new, info

    def check_shape(self, shape: tuple[int, ...]) -> None:
        jax.eval_shape(self.project, jnp.zeros(shape))

    def check(self, log_density: LogDensity, particles: Particles) -> None:
        """Accept every density: the chains rely on no symmetry."""
