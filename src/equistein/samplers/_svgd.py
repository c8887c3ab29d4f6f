"""Stein variational gradient descent."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PyTree

from equistein._types import Key, LogDensity, Particles, Point, Scalar
from equistein.kernels import AbstractKernel, squared_discrepancy
from equistein.samplers._base import AbstractSampler
from equistein.samplers._scores import (
    check_annealing,
    clipped,
    inverse_temperature,
    langevin_update,
    rms,
    Schedule,
)


class SVGDState(eqx.Module):
    """What the next step needs."""

    particles: Particles
    opt_state: PyTree
    length: Scalar
    step: Int[Array, ""]
    repellers: Float[Array, "repeller *shape"] | None


class SVGDInfo(eqx.Module):
    """What a step was like, before it moved the particles.

    Norms are root mean squares over the particles, in the units of the points for the
    update and of the score for the force.
    """

    log_density: Scalar
    force_norm: Scalar
    update_norm: Scalar
    bandwidth: Scalar
    inverse_temperature: Scalar


class SVGD(AbstractSampler[SVGDState, SVGDInfo]):
    r"""Move particles along the kernelized Stein force.

    $$x_i \leftarrow x_i + \varepsilon\, \psi(x_i), \qquad
      \psi(x) = \frac1n \sum_j K(x, x_j)\, \beta s(x_j) + \mathrm{div}_{x_j} K(x, x_j)$$

    The optimizer is fed with $-\psi$, so `optax.sgd(step)` is the equation above. The
    kernel decides what the particles see of each other, and whether the flow is
    equivariant; `optax.adam` ties it to the axes all the same, `vector_adam` does not.

    Args:
        kernel: What turns scores into forces.
        optimizer: An Optax transformation.
        annealing: The inverse temperature $\beta$ as a function of the step number,
            such as `Geometric(1_000)`; 1 by default.
        langevin: The length $\eta$ of an unadjusted Langevin step
            $x + \eta \beta s(x) + \sqrt{2\eta}\, \xi$ taken with each step, a number or
            a function like `annealing`; 0 by default. It mends the lack of spread that
            few particles have in many dimensions.
        score_clip: The largest norm of a point's score; longer ones are shortened.
        project: What puts a point onto the subspace the particles live on; by default
            that of the kernel.

    Raises:
        ValueError: If an argument is not what it should be.

    References:
        Liu and Wang (2016), Algorithm 1; D'Angelo and Fortuin (2021) for annealing;
        Zhang, Zhang, Carin and Chen (2020), Stochastic Particle-Optimization Sampling,
        for the noise.
    """

    kernel: AbstractKernel
    optimizer: optax.GradientTransformation
    annealing: Schedule | None
    langevin: float | Schedule
    score_clip: float | Scalar | None
    project: Callable[[Point], Point] | None

    def __init__(
        self,
        kernel: AbstractKernel,
        optimizer: optax.GradientTransformation,
        *,
        annealing: Schedule | None = None,
        langevin: float | Schedule = 0.0,
        score_clip: float | Scalar | None = None,
        project: Callable[[Point], Point] | None = None,
    ):
        if not isinstance(kernel, AbstractKernel):
            raise ValueError(f"SVGD needs `kernel`, such as RBF(), but got {kernel!r}.")
        if not isinstance(optimizer, optax.GradientTransformation):
            raise ValueError(
                "SVGD needs `optimizer`, an Optax transformation such as "
                f"optax.sgd(0.1), but got {optimizer!r}."
            )
        check_annealing("SVGD", annealing)
        if not callable(langevin) and not langevin >= 0:
            raise ValueError(f"SVGD needs `langevin` >= 0, but got {langevin!r}.")
        if isinstance(score_clip, int | float) and not score_clip > 0:
            raise ValueError(f"SVGD needs `score_clip` > 0, but got {score_clip!r}.")
        self.kernel = kernel
        self.optimizer = optimizer
        self.annealing = annealing
        self.langevin = langevin
        self.score_clip = score_clip
        self.project = project

    def init(
        self,
        particles: Particles,
        *,
        repellers: Float[Array, "repeller *shape"] | None = None,
    ) -> SVGDState:
        """Build the state.

        Args:
            particles: The start; it is projected onto the kernel's subspace.
            repellers: Fixed particles that join the sums as sources, such as data
                that the particles should keep away from.
        """
        project = self.project or self.kernel.project
        particles = jax.vmap(project)(particles)
        if repellers is not None:
            repellers = jax.vmap(project)(repellers.astype(particles.dtype))
        return SVGDState(
            particles,
            self.optimizer.init(particles),
            self.kernel.length(particles).astype(particles.dtype),
            jnp.zeros((), int),
            repellers,
        )

    def step(
        self, key: Key, state: SVGDState, log_density: LogDensity
    ) -> tuple[SVGDState, SVGDInfo]:
        x, dtype = state.particles, state.particles.dtype
        beta = inverse_temperature(self.annealing, state.step, dtype)
        values, scores = jax.vmap(jax.value_and_grad(log_density))(x)
        scores = beta * clipped(scores, self.score_clip)
        length = self._length(state, scores)
        kernel = self.kernel.with_length(length)
        sources, source_scores = x, scores
        if state.repellers is not None:
            extra = jax.vmap(jax.grad(log_density))(state.repellers)
            sources = jnp.concatenate([x, state.repellers])
            source_scores = jnp.concatenate(
                [scores, beta * clipped(extra, self.score_clip)]
            )
        force = kernel.stein_force(x, sources, source_scores)
        with jax.numpy_dtype_promotion("standard"):  # Optax mixes int and float
            # Optax descends; the force points uphill.
            updates, opt_state = self.optimizer.update(-force, state.opt_state, x)
        update = jnp.asarray(updates, dtype) + self._langevin_step(key, state, scores)
        new = SVGDState(
            x + update, opt_state, length, state.step + 1,
            state.repellers,
        )  # fmt: skip
        info = SVGDInfo(jnp.mean(values), rms(force), rms(update), length, beta)
        return new, info

    def check_shape(self, shape: tuple[int, ...]) -> None:
        self.kernel.check_shape(shape)

    def check(self, log_density: LogDensity, particles: Particles) -> None:
        self.kernel.check_target(log_density, particles)

    def _length(self, state: SVGDState, scores: Particles) -> Scalar:
        x, dtype, rule = state.particles, state.length.dtype, self.kernel.rule
        if rule is None:
            return self.kernel.length(x).astype(dtype)
        some = slice(None, None, -(-len(x) // rule.max_particles))

        def discrepancy(length):
            kernel = self.kernel.with_length(length)
            return squared_discrepancy(kernel, x[some], scores[some], own_terms=False)

        return jax.lax.cond(
            state.step % rule.every == 0,
            lambda: rule.choose(self.kernel.length(x), discrepancy).astype(dtype),
            lambda: state.length,
        )

    def _langevin_step(
        self, key: Key, state: SVGDState, scores: Particles
    ) -> Particles | float:
        if not callable(self.langevin) and self.langevin == 0:
            return 0.0
        number = state.step.astype(scores.dtype)
        project = self.project or self.kernel.project
        return langevin_update(key, number, scores, self.langevin, project)
