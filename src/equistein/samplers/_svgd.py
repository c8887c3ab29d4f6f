"""Stein variational gradient descent."""

import copy
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh
from jaxtyping import Array, Float, Int, PyTree

from equistein._arrays import check_particles
from equistein._gate import gate, keyed
from equistein._numbers import check_score_clip
from equistein._sharding import split_rows
from equistein._types import Key, LogDensity, Particles, Point, Scalar
from equistein.kernels import AbstractBandwidth, AbstractKernel, measured_bandwidth
from equistein.samplers._base import AbstractSampler
from equistein.samplers._check_kernel import check_kernel
from equistein.samplers._cond import cond_if_any
from equistein.samplers._optimizers import canonical_optimizer
from equistein.samplers._scores import (
    check_annealing,
    check_projection,
    clipped,
    inverse_temperature,
    langevin_update,
    rms,
)
from equistein.samplers._step_sizes import (
    check_step_size,
    scaled,
    Schedule,
    StepSize,
)
from equistein.samplers._validation import check_density


class SVGDState(eqx.Module):
    """What the next step needs."""

    particles: Particles
    opt_state: PyTree
    bandwidth: Scalar
    step: Int[Array, ""]


class SVGDInfo(eqx.Module):
    """What a step was like, before it moved the particles.

    Norms are root mean squares over the particles, in the units of the points for the
    update and of the score for the force; `evaluations` counts those of the score at
    each particle so far.
    """

    log_density: Scalar
    force_norm: Scalar
    update_norm: Scalar
    bandwidth: Scalar
    inverse_temperature: Scalar
    evaluations: Int[Array, ""]


@gate
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
        langevin: The step size $\eta$ of an unadjusted Langevin step
            $x + \eta \beta s(x) + \sqrt{2\eta}\, \xi$ taken with each step, a number or
            a function like `annealing`; 0 by default. It mends the lack of spread that
            few particles have in many dimensions.
        score_clip: The largest norm of a point's score; longer ones are shortened.
        project: What puts points and updates onto the linear subspace the particles
            live on; by default that of the kernel.
        repellers: Fixed particles that join the sums as sources, such as data that the
            particles should keep away from; they are projected.

    Raises:
        ValueError: If an argument is not what it should be.

    References:
        Liu and Wang (2016), Algorithm 1; D'Angelo and Fortuin (2021) for annealing;
        Zhang, Zhang, Carin and Chen (2020), Stochastic Particle-Optimization Sampling,
        for the noise.
    """

    takes_batches = True

    kernel: AbstractKernel
    optimizer: optax.GradientTransformation
    annealing: Schedule | None
    langevin: StepSize
    score_clip: float | Scalar | None
    project: Callable[[Point], Point] | None
    repellers: Float[Array, "repeller *shape"] | None
    factor: float | Scalar | None
    mesh: Mesh | None = eqx.field(static=True)

    def __init__(
        self,
        kernel: AbstractKernel,
        optimizer: optax.GradientTransformation,
        *,
        annealing: Schedule | None = None,
        langevin: StepSize = 0.0,
        score_clip: float | Scalar | None = None,
        project: Callable[[Point], Point] | None = None,
        repellers: Float[Array, "repeller *shape"] | None = None,
    ):
        if not isinstance(kernel, AbstractKernel):
            made = ""
            if callable(kernel):
                made = (
                    " A function is made one by a class: `class Mine(es.kernels."
                    "AbstractScalarKernel)` with `def __call__(self, x, y)`."
                )
            raise ValueError(
                f"SVGD needs `kernel`, such as RBF(), but got {kernel!r}.{made}"
            )
        if not isinstance(optimizer, optax.GradientTransformation):
            raise ValueError(
                "SVGD needs `optimizer`, an Optax transformation such as "
                f"optax.sgd(0.1), but got {optimizer!r}."
            )
        check_annealing("SVGD", annealing)
        check_step_size("SVGD", "langevin", langevin, zero=True)
        check_score_clip("SVGD", score_clip)
        self.kernel = kernel
        self.optimizer = canonical_optimizer(optimizer)
        self.annealing = annealing
        self.langevin = langevin
        self.score_clip = score_clip
        self.project = project
        self.factor = None
        self.mesh = None
        self.repellers = None if repellers is None else self._placed(repellers)

    def with_repellers(self, points: Float[Array, "repeller *shape"] | None) -> "SVGD":
        """Return this sampler with other fixed particles in its sums, or with none."""
        placed = None if points is None else self._placed(points)
        return _replaced(self, "repellers", placed)

    def scaled(self, factor: float | Scalar) -> "SVGD":
        """Return this sampler with its updates and its Langevin step multiplied."""
        quiet = isinstance(self.langevin, int | float) and self.langevin == 0
        langevin = self.langevin if quiet else scaled(self.langevin, factor)
        before = 1.0 if self.factor is None else self.factor
        return _replaced(
            _replaced(self, "langevin", langevin), "factor", before * factor
        )

    def on(self, mesh: Mesh) -> "SVGD":
        """Return this sampler with its sums and scores split over devices.

        Each device holds all particles, and computes the score and the force of its
        part of them; both are gathered, and all devices take the same step.
        """
        other = copy.copy(self)
        object.__setattr__(other, "mesh", mesh)
        return other

    def init(self, particles: Particles, log_density: LogDensity) -> SVGDState:
        """Build the state; the particles are projected."""
        del log_density
        particles = self._projected(particles)
        return SVGDState(
            particles,
            self.optimizer.init(particles),
            jnp.ones((), particles.dtype),  # the first step measures it
            jnp.zeros((), int),
        )

    @keyed
    def step(
        self, key: Key, state: SVGDState, log_density: LogDensity
    ) -> tuple[SVGDState, SVGDInfo]:
        x, dtype = state.particles, state.particles.dtype
        beta = inverse_temperature(self.annealing, state.step, dtype)
        settings = log_density, self.kernel, beta, self.score_clip
        values, scores, prepared = split_rows(self.mesh, _prepare, x, *settings)
        bandwidth = self._bandwidth(state, scores)
        if self.repellers is not None:
            repellers = self.repellers.astype(dtype)
            _, _, fixed = split_rows(self.mesh, _prepare, repellers, *settings)
            join = lambda *parts: jnp.concatenate(parts)
            prepared = jax.tree.map(join, prepared, fixed)
        kernel = self.kernel.with_bandwidth(bandwidth)
        force = split_rows(self.mesh, _force, x, kernel, prepared)
        with jax.numpy_dtype_promotion("standard"):  # Optax mixes int and float
            # Optax descends; the force points uphill.
            updates, opt_state = self.optimizer.update(-force, state.opt_state, x)
        update = jnp.asarray(updates, dtype)
        if self.factor is not None:
            update = jnp.asarray(self.factor, dtype) * update
        update = self._projected(update + self._langevin_step(key, state, scores))
        new = SVGDState(x + update, opt_state, bandwidth, state.step + 1)
        info = SVGDInfo(
            jnp.mean(values), rms(force), rms(update), bandwidth, beta, new.step
        )
        return new, info

    def check_shape(self, shape: tuple[int, ...]) -> None:
        check_kernel(self.kernel, shape)
        if self.project is not None:
            check_projection("SVGD", self.project, shape)
        if self.repellers is not None and self.repellers.shape[1:] != shape:
            raise ValueError(
                f"`repellers` hold points of shape {self.repellers.shape[1:]}, but "
                f"`particles` of shape {shape}: give the same shape."
            )

    def check(self, log_density: LogDensity, particles: Particles) -> None:
        if self.repellers is not None:
            check_density(log_density, self.repellers, "repellers")
        self.kernel.check(log_density, particles)

    def _projected(self, points: Particles) -> Particles:
        return jax.vmap(self.project or self.kernel.project)(points)

    def _placed(self, repellers: Array) -> Float[Array, "repeller *shape"]:
        """Return the repellers on the subspace the particles live on."""
        return self._projected(check_particles(repellers, "repellers"))

    def _bandwidth(self, state: SVGDState, scores: Particles) -> Scalar:
        rule = self.kernel.bandwidth
        if not isinstance(rule, AbstractBandwidth):
            return measured_bandwidth(self.kernel, state.particles, scores)
        return cond_if_any(
            state.step % rule.every == 0,
            lambda: measured_bandwidth(self.kernel, state.particles, scores),
            state.bandwidth,
        )

    def _langevin_step(
        self, key: Key, state: SVGDState, scores: Particles
    ) -> Particles | float:
        if isinstance(self.langevin, int | float) and self.langevin == 0:
            return 0.0
        number = state.step.astype(scores.dtype)
        return langevin_update(key, number, scores, self.langevin)


def _prepare(
    points: Particles,
    log_density: LogDensity,
    kernel: AbstractKernel,
    beta: Scalar,
    score_clip: float | Scalar | None,
) -> tuple[Array, Particles, PyTree]:
    """Return log densities, scores, and what the kernel prepares of such sources."""
    values, scores = jax.vmap(jax.value_and_grad(log_density))(points)
    scores = beta * clipped(scores, score_clip)
    return values, scores, kernel.prepare(points, scores)


def _force(targets: Particles, kernel: AbstractKernel, prepared: PyTree) -> Particles:
    return kernel.force(targets, prepared)


def _replaced(sampler: SVGD, name: str, value: Any) -> SVGD:
    """Return a sampler with another value of one field, which may be None."""
    return eqx.tree_at(
        lambda s: getattr(s, name), sampler, value, is_leaf=lambda leaf: leaf is None
    )
