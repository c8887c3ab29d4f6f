"""Metropolis-adjusted Langevin: exact independent chains, the baseline of SVGD."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Int

from equistein._gate import gate, keyed
from equistein._numbers import check_score_clip
from equistein._types import Key, LogDensity, Particles, Point, Scalar
from equistein.samplers._geometric_path import GeometricPath, PathWalker
from equistein.samplers._markov_chains import AbstractMarkovChains
from equistein.samplers._metropolis import (
    adjusted_move,
    has_density,
    langevin_move,
    shortened,
    Walker,
    walker_at,
)
from equistein.samplers._scores import (
    check_annealing,
    check_projection,
    everywhere,
    inverse_temperature,
    rms,
)
from equistein.samplers._step_sizes import check_step_size, Schedule
from equistein.samplers._when_due import when_due

_GAIN = 0.2  # of the step's logarithm, for a whole unit of acceptance


class MALAState(eqx.Module):
    """What the next step needs; without values, it evaluates the density first."""

    particles: Particles
    values: Float[Array, " particle"]
    scores: Float[Array, "particle *shape"]
    has_values: Bool[Array, ""]
    log_step_size: Scalar
    step: Int[Array, ""]


class MALAInfo(eqx.Module):
    """What a step was like.

    The update's norm is a root mean square over the particles; `evaluations` counts
    those of the score at each particle so far, one a step and one at the start, and
    `undefined` the proposals of this step at which the log density was NaN.
    """

    log_density: Scalar
    acceptance: Scalar
    update_norm: Scalar
    step_size: Scalar
    inverse_temperature: Scalar
    evaluations: Int[Array, ""]
    undefined: Int[Array, ""]


@gate
class MALA(AbstractMarkovChains[MALAState, MALAInfo]):
    r"""Move each particle by Langevin proposals, accepted or not.

    $$y = x + \eta \beta s(x) + \sqrt{2 \eta}\, \xi, \qquad
      \xi \sim \mathcal N(0, I)$$

    accepted with the probability that leaves $p^\beta$ exactly invariant. For the first
    `num_adapt` steps $\eta$ moves so that `acceptance` of the proposals are accepted,
    counted over all particles; afterwards it stays, and the law is exact. Run it from
    the particles of another sampler to correct them. One score evaluation a step: the
    state keeps the density at its particles.

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

    step_size: float | Scalar
    num_adapt: int | Scalar
    acceptance: float
    annealing: Schedule | None
    score_clip: float | Scalar | None
    project: Callable[[Point], Point]

    def __init__(
        self,
        step_size: float | Scalar,
        *,
        num_adapt: int | Int[Array, ""] = 0,
        acceptance: float = 0.574,
        annealing: Schedule | None = None,
        score_clip: float | Scalar | None = None,
        project: Callable[[Point], Point] = everywhere,
    ):
        check_step_size("MALA", "step_size", step_size, zero=False)
        if not 0 < acceptance < 1:
            raise ValueError(
                f"MALA needs 0 < `acceptance` < 1, but got acceptance={acceptance!r}."
            )
        if isinstance(num_adapt, int) and num_adapt < 0:
            raise ValueError(f"MALA needs `num_adapt` >= 0, but got {num_adapt!r}.")
        check_annealing("MALA", annealing)
        check_score_clip("MALA", score_clip)
        self.step_size = step_size
        self.num_adapt = num_adapt
        self.acceptance = float(acceptance)
        self.annealing = annealing
        self.score_clip = score_clip
        self.project = project

    def init(self, particles: Particles) -> MALAState:
        """Build the state; the particles are projected."""
        x = jax.vmap(self.project)(particles)
        log_step_size = self.parameters(x)
        # The density is not known yet: the first step looks at it.
        values, no = jnp.zeros(len(x), x.dtype), jnp.zeros((), bool)
        return MALAState(
            x, values, jnp.zeros_like(x), no, log_step_size, jnp.zeros((), int)
        )

    def renewed(self, state: MALAState, log_density: LogDensity) -> MALAState:
        same = has_density(log_density, state.particles, state.values)
        return eqx.tree_at(lambda s: s.has_values, state, state.has_values & same)

    def scaled(self, factor: float | Scalar) -> "MALA":
        """Return this sampler with its first step size multiplied."""
        return eqx.tree_at(lambda s: s.step_size, self, self.step_size * factor)

    @keyed
    def step(
        self, key: Key, state: MALAState, log_density: LogDensity
    ) -> tuple[MALAState, MALAInfo]:
        x = state.particles
        beta = inverse_temperature(self.annealing, state.step, x.dtype)
        walkers = when_due(
            ~state.has_values,
            lambda: jax.vmap(lambda point: walker_at(log_density, point))(x),
            jax.vmap(Walker)(x, state.values, state.scores),
        )
        step_size = jnp.exp(state.log_step_size)

        def move(key, walker):
            return langevin_move(
                key, log_density, walker, beta, step_size, self.project, self.score_clip
            )

        moved, chances, defined = jax.vmap(move)(jr.split(key, len(x)), walkers)
        rate = jnp.mean(chances)
        gain = jnp.where(
            state.step < self.num_adapt, _GAIN * (rate - self.acceptance), 0
        )
        info = MALAInfo(
            jnp.mean(walkers.value), rate, rms(moved.point - x), step_size, beta,
            state.step + 2, jnp.sum(~defined),
        )  # fmt: skip
        new = MALAState(
            moved.point, moved.value, moved.score, jnp.ones_like(state.has_values),
            state.log_step_size + gain, state.step + 1,
        )  # fmt: skip
        return new, info

    def parameters(self, particles: Particles) -> Scalar:
        return jnp.log(jnp.full((), self.step_size, particles.dtype))

    @keyed
    def move(
        self,
        key: Key,
        path: GeometricPath,
        walker: PathWalker,
        beta: Scalar,
        parameters: Scalar,
    ) -> tuple[PathWalker, Scalar, Int[Array, ""], Bool[Array, ""]]:
        def tempered(walker):
            value, drift = path.tempered(walker, beta)
            return value, shortened(drift, self.score_clip)

        walker, chance, defined = adjusted_move(
            key, path.proposed_at, tempered, walker, jnp.exp(parameters), self.project
        )
        return walker, chance, jnp.ones((), int), defined

    def adapted(self, parameters: Scalar, acceptance: Scalar) -> Scalar:
        return parameters + _GAIN * (acceptance - self.acceptance)

    def check_invariant(self) -> None:
        if self.annealing is not None:
            raise ValueError(
                "MALA with `annealing` leaves no density invariant: leave it out where "
                "another sampler sets the temperature."
            )

    def check_shape(self, shape: tuple[int, ...]) -> None:
        check_projection("MALA", self.project, shape)
