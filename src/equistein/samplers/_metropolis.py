"""Metropolis-adjusted chains: MALA and Hamiltonian Monte Carlo, with a metric."""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Int

from equistein._check_arguments import accept_integer_key, check_arguments
from equistein._numbers import check_integers, check_score_clip
from equistein._types import Key, Particles, Point, Scalar
from equistein.samplers._geometric_path import GeometricPath, PathWalker
from equistein.samplers._markov_chains import (
    AbstractMarkovChains,
    ChainParameters,
    Move,
)
from equistein.samplers._steps import check_projection, clip_norms, identity, Schedule

_FAR = 10.0  # widths, beyond which a density may be NaN: no chain lives there
_DIVERGED = 1e6  # times as far from 0 as the last point, where numbers overflow
_SHORT, _LONG = 0.08, 1.2  # of the step size: between them that of HMC is drawn


class AbstractMetropolis(AbstractMarkovChains):
    r"""Chains along short trajectories, with one metric: what `MALA` and `HMC` share.

    One leapfrog of the step $\sqrt{2 \eta}$ is the Langevin proposal of `MALA`.
    """

    num_leapfrogs: eqx.AbstractVar[int]
    score_clip: eqx.AbstractVar[float | Scalar | None]
    varies: eqx.AbstractVar[bool]

    def __check_init__(self):
        if isinstance(self.num_adapt, int):
            check_integers(type(self).__name__, 0, num_adapt=self.num_adapt)
        check_score_clip(type(self).__name__, self.score_clip)

    @accept_integer_key
    def noise(self, key: Key, points: Particles) -> tuple[Particles, Array]:
        normal_key, uniform_key = jr.split(key)
        shape = len(points), 2 if self.varies else 1
        uniforms = jr.uniform(uniform_key, shape, points.dtype)
        return jr.normal(normal_key, points.shape, points.dtype), uniforms

    def move(
        self,
        noise: tuple[Point, Array],
        path: GeometricPath,
        walker: PathWalker,
        beta: Scalar,
        parameters: ChainParameters,
    ) -> Move:
        normal, uniforms = noise
        size = jnp.exp(parameters.log_step_size)
        step = jnp.sqrt(2 * size) if self.power == 2 else size
        if self.varies:
            step = step * _SHORT * (_LONG / _SHORT) ** uniforms[1]
        metric = parameters.metric
        if metric is None:  # F is 1
            pull, push, start = self.project, identity, self.project(normal)
        else:
            pull, push, start = metric.pull, metric.push, normal

        def kicked(walker, momentum):
            score = path.tempered(walker, beta)[1]
            score = clip_norms(score[None], self.score_clip)[0]
            return momentum + 0.5 * step * pull(score)

        def leap(_: Any, carry: tuple[PathWalker, Array]):
            walker, momentum = carry
            momentum = kicked(walker, momentum)
            walker = path.evaluate_raw(walker.point + push(step * momentum))
            return walker, kicked(walker, momentum)

        begin = walker, start
        proposal, momentum = jax.lax.fori_loop(0, self.num_leapfrogs, leap, begin)
        value, new_value = (path.tempered(w, beta)[0] for w in (walker, proposal))
        kinetic = 0.5 * (jnp.sum(momentum**2) - jnp.sum(start**2))
        log_ratio = new_value - value - kinetic
        finite = jnp.isfinite(log_ratio)
        chance = jnp.where(finite, jnp.exp(jnp.minimum(log_ratio, 0)), 0)
        pick = lambda new, old: jnp.where(uniforms[0] < chance, new, old)
        if metric is None:
            # Sums are NaN if any is, which compiled maxima may not be.
            sizes = [jnp.sum(w.point**2) for w in (proposal, walker)]
            near = sizes[0] < _DIVERGED**2 * sizes[1]
        else:
            near = jnp.mean(metric.whiten(proposal.point) ** 2) < _FAR**2
        spent = jnp.full((), self.num_leapfrogs, int)
        walker = jax.tree.map(pick, proposal, walker)
        return walker, chance, spent, (new_value < jnp.inf) | ~near  # NaN is not

    def check_shape(self, shape: tuple[int, ...]) -> None:
        check_projection(type(self).__name__, self.project, shape)


@check_arguments
class MALA(AbstractMetropolis):
    r"""Move each particle by Langevin proposals, accepted or not.

    $$y = x + \eta\, F F^\top d(x) + \sqrt{2 \eta}\, F \xi, \qquad d = \beta s, \qquad
      \xi \sim \mathcal N(0, I)$$

    accepted with the probability that leaves $p^\beta$ exactly invariant. For the first
    `num_adapt` steps $\eta$ moves so that `acceptance` of the proposals are accepted;
    then it stays, and the distribution is exact. One score evaluation a step.

    The metric $F F^\top$ is 1 where a step size is given, and else a `Preconditioner`
    learned from the chains while the step adapts, in rounds, each twice as long as the
    last. Parallel tempering and sequential Monte Carlo learn one at each temperature in
    any case. Points with several axes or a projection have none.

    Args:
        step_size: The initial step size $\eta > 0$, in squared units of the points, or
            of the metric where there is one. By default .3, adapted.
        num_adapt: The number of steps that adapt $\eta$, and learn the metric. By
            default half of a run's, or none where a step size is given.
        acceptance: The acceptance rate aimed at.
        annealing: The inverse temperature $\beta$ as a function of the steps taken;
            1 by default.
        score_clip: The largest norm of the drift d; longer ones are shortened in the
            proposal, and the distribution stays exact.
        project: What puts a point onto the subspace the particles live on.
        varies: Whether steps have random factors as those of `HMC`, for narrow places;
            within `AnnealedSMC` they do, if its number of moves is not given.

    References:
        Roberts and Tweedie (1996), Exponential convergence of Langevin distributions,
        with the truncated drift; Roberts and Rosenthal (1998) for the acceptance rate.
    """

    step_size: float | Scalar | None = None
    _: dataclasses.KW_ONLY
    num_adapt: int | Int[Array, ""] | None = None
    acceptance: float = 0.574
    annealing: Schedule | None = None
    score_clip: float | Scalar | None = None
    project: Callable[[Point], Point] = eqx.field(default=identity)
    varies: bool = False
    num_leapfrogs: int = eqx.field(default=1, init=False)
    default_step: ClassVar[float] = 0.3
    power: ClassVar[int] = 2

    def varied(self) -> "MALA":
        return dataclasses.replace(self, varies=True)


@check_arguments
class HMC(AbstractMetropolis):
    r"""Move each particle along a short Hamiltonian trajectory, accepted or not.

    A momentum $\rho \sim \mathcal N(0, I)$ is drawn, and each of the `num_leapfrogs`
    steps is

    $$\rho \leftarrow \rho + \tfrac\varepsilon2 F^\top \beta s(x), \quad
      x \leftarrow x + \varepsilon F \rho, \quad
      \rho \leftarrow \rho + \tfrac\varepsilon2 F^\top \beta s(x),$$

    where $\varepsilon$ is the step size times a factor drawn for each particle, with
    its logarithm uniform from .08 to 1.2: short steps for the narrow places, long ones
    for the wide. The metric $F F^\top$ is that of `MALA`.

    Args:
        step_size: The initial step size, in units of the points, or of the metric
            where there is one. By default .5, adapted.
        num_leapfrogs: The number of steps of a trajectory, each of which takes one
            score evaluation.
        num_adapt, acceptance, annealing, project: As of `MALA`.

    References:
        Neal (2011), MCMC using Hamiltonian dynamics.
    """

    step_size: float | Scalar | None = None
    _: dataclasses.KW_ONLY
    num_leapfrogs: int = 4
    num_adapt: int | Int[Array, ""] | None = None
    acceptance: float = 0.75
    annealing: Schedule | None = None
    project: Callable[[Point], Point] = eqx.field(default=identity)
    score_clip: float | Scalar | None = eqx.field(default=None, init=False)
    default_step: ClassVar[float] = 0.5
    varies: bool = eqx.field(default=True, init=False)

    def __check_init__(self):
        check_integers("HMC", num_leapfrogs=self.num_leapfrogs)
