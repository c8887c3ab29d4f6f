"""Stein variational gradient descent, and optimizers for it."""

import dataclasses
import types
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.core import Tracer
from jax.sharding import Mesh
from jaxtyping import Array, Float, Int, PyTree

from equistein._arrays import check_particles
from equistein._check_arguments import accept_integer_key, check_arguments
from equistein._numbers import check_score_clip
from equistein._sharding import split_over_devices
from equistein._types import Key, LogDensity, Particles, Point, Scalar
from equistein.kernels import AbstractBandwidth, AbstractKernel, measured_bandwidth, RBF
from equistein.samplers._base import AbstractSampler, cond_if_any_run
from equistein.samplers._steps import (
    check_projection,
    check_step_size,
    clip_norms,
    Geometric,
    inverse_temperature,
    langevin_update,
    rms,
    scale_steps,
    Schedule,
    StepSize,
    thermal,
)

_LIBRARIES = ("optax", "equistein", "jax")  # their functions read no changing variables
_MOST = 256  # optimizers in the cache


_cache: dict[Hashable, optax.GradientTransformation | None] = {}


def canonical_optimizer(optimizer: optax.GradientTransformation | None) -> Any:
    """Return the first optimizer that was made with the same code and numbers.

    Optax makes one of new functions at each call, for which JAX would compile again.
    A custom part, such as a schedule, equals only itself: it may read variables that
    change.
    """
    try:
        key = _key(optimizer)
    except (RecursionError, TypeError, ValueError):  # a part that has no such key
        return optimizer
    if key not in _cache and len(_cache) >= _MOST:
        _cache.pop(next(iter(_cache)))
    return _cache.setdefault(key, optimizer)


def _key(value: Any) -> Hashable:
    """Return a key that two values share only if JAX would compile the same code."""
    if value is None or isinstance(value, bool | int | float | complex | str):
        return type(value), repr(value)  # 1 == 1.0 == True, and 0.0 == -0.0
    if isinstance(value, np.generic | jax.Array) and not isinstance(value, Tracer):
        numbers, weak = np.asarray(value), getattr(value, "weak_type", False)
        return type(value), numbers.dtype, numbers.shape, weak, numbers.tobytes()
    if isinstance(value, tuple):
        return type(value), *map(_key, value)
    module = getattr(value, "__module__", None) or ""
    if isinstance(value, types.FunctionType) and module.split(".")[0] in _LIBRARIES:
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        defaults = value.__defaults__, *sorted((value.__kwdefaults__ or {}).items())
        return module, value.__code__, _key(defaults), *map(_key, cells)
    return type(value), id(value)


class VectorAdamState(NamedTuple):
    """The step count, the mean gradient, and the mean square length by point."""

    num_updates: jax.Array
    mean: PyTree
    square: PyTree


@check_arguments
def vector_adam(
    learning_rate: optax.ScalarOrSchedule,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
) -> optax.GradientTransformation:
    r"""Adam whose second moment is one number per point, its mean squared gradient.

    $$m \leftarrow b_1 m + (1 - b_1) g, \quad
      v \leftarrow b_2 v + (1 - b_2) |g|^2 / d, \quad
      u = \hat m / (\sqrt{\hat v} + \epsilon)$$

    Adam divides each coordinate by its own scale, which ties it to the axes; here all
    $d$ coordinates of a point share one, so rotated gradients give rotated updates. The
    first axis counts points. A coordinate moves by about `learning_rate` in a step.

    References:
        Ling, Sharp and Jacobson (2022), VectorAdam for Rotation Equivariant Geometry
        Optimization.
    """

    def init(params):
        square = jax.tree.map(lambda x: jnp.zeros(len(x), x.dtype), params)
        mean = jax.tree.map(jnp.zeros_like, params)
        return VectorAdamState(jnp.zeros((), int), mean, square)

    def update(updates, state, params=None):
        count = state.num_updates + 1
        mean = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, state.mean, updates)
        mean_square = lambda g: jnp.mean(g.reshape(len(g), -1) ** 2, axis=1)
        squares = jax.tree.map(mean_square, updates)
        square = jax.tree.map(lambda v, s: b2 * v + (1 - b2) * s, state.square, squares)

        def direction(m, v):
            exponent = count.astype(m.dtype)
            root = jnp.sqrt(v / (1 - jnp.asarray(b2, m.dtype) ** exponent)) + eps
            corrected = m / (1 - jnp.asarray(b1, m.dtype) ** exponent)
            return corrected / root.reshape(-1, *[1] * (m.ndim - 1))

        updates = jax.tree.map(direction, mean, square)
        return updates, VectorAdamState(count, mean, square)

    return optax.chain(
        optax.GradientTransformation(init, update),
        optax.scale_by_learning_rate(learning_rate),
    )


class SVGDState(eqx.Module):
    """What the next step needs."""

    particles: Particles
    opt_state: PyTree
    bandwidth: Scalar
    step: Int[Array, ""]


class SVGDInfo(eqx.Module):
    """What a step was like, before it moved the particles."""

    log_density: Scalar
    force_norm: Scalar
    update_norm: Scalar
    bandwidth: Scalar
    inverse_temperature: Scalar
    evaluations: Int[Array, ""]


@check_arguments
class SVGD(AbstractSampler[SVGDState, SVGDInfo]):
    r"""Move particles along the kernelized Stein force.

    $$x_i \leftarrow x_i + \varepsilon\, \psi(x_i), \qquad
      \psi(x) = \frac1n \sum_j
      \bigl[K(x, x_j)\, \beta s(x_j) + \mathrm{div}_{x_j} K(x, x_j)\bigr]$$

    The optimizer is fed with $-\psi$, so `optax.sgd(step)` is the equation above. The
    kernel decides whether the flow is equivariant; `optax.adam` scales each coordinate
    and breaks rotations, `vector_adam` does not.

    Args:
        kernel: What turns scores into forces; `RBF()` by default.
        optimizer: The Optax transformation; `vector_adam(0.1)` by default. With None
            the update is $\psi$ times `factor`.
        annealing: The inverse temperature $\beta$ as a function of the number of steps
            taken, such as `Geometric(1_000)`; 1 by default.
        langevin: The step size $\eta$, a number or a function like `annealing`, of a
            Langevin step $x + \eta \beta s(x) + \sqrt{2\eta}\, \xi$ taken with each
            step: it corrects the lack of spread of few particles in many dimensions.
        score_clip: The largest norm of a point's score; longer ones are shortened.
        project: What puts points onto the linear subspace the particles live on; by
            default that of the kernel.
        repellers: Fixed particles that join the sums as sources.
        factor: What multiplies the updates.
        mesh: The devices that share sums and scores; the method `shard` sets it. Each
            holds all particles, and computes the score and the force of its part.

    References:
        Liu and Wang (2016), Algorithm 1; D'Angelo and Fortuin (2021) for annealing;
        Zhang, Zhang, Carin and Chen (2020), Stochastic Particle-Optimization Sampling,
        for the noise.
    """

    kernel: AbstractKernel = eqx.field(default_factory=RBF)
    optimizer: optax.GradientTransformation | None = eqx.field(
        converter=canonical_optimizer, default_factory=lambda: vector_adam(0.1)
    )
    _: dataclasses.KW_ONLY
    annealing: Schedule | None = None
    langevin: StepSize = 0.0
    score_clip: float | Scalar | None = None
    project: Callable[[Point], Point] | None = None
    repellers: Float[Array, "repeller *shape"] | None = None
    factor: float | Scalar | None = None
    mesh: Mesh | None = eqx.field(default=None, static=True)

    def __check_init__(self):
        check_step_size("SVGD", "langevin", self.langevin, zero=True)
        check_score_clip("SVGD", self.score_clip)
        if self.repellers is not None:
            check_particles(self.repellers, "repellers")

    def scale_steps(self, factor: float | Scalar) -> "SVGD":
        """Return this sampler with its updates and its Langevin step multiplied."""
        langevin = self.langevin
        langevin = scale_steps(langevin, factor) if self._is_noisy else langevin
        before = 1.0 if self.factor is None else self.factor
        return dataclasses.replace(self, factor=before * factor, langevin=langevin)

    def shard(self, mesh: Mesh) -> "SVGD":
        """Return this sampler with its sums and scores split over devices."""
        return dataclasses.replace(self, mesh=mesh)

    def init(self, particles: Particles, log_density: LogDensity) -> SVGDState:
        """Build the state; the particles are projected."""
        particles = self._project(particles)
        return SVGDState(
            particles,
            None if self.optimizer is None else self.optimizer.init(particles),
            jnp.ones((), particles.dtype),  # until the first step sets it
            jnp.zeros((), int),
        )

    @accept_integer_key
    def step(
        self, key: Key, state: SVGDState, log_density: LogDensity
    ) -> tuple[SVGDState, SVGDInfo]:
        x, dtype = state.particles, state.particles.dtype
        beta = inverse_temperature(self.annealing, state.step, dtype)
        settings = log_density, self.kernel, beta, self.score_clip
        values, scores, prepared = split_over_devices(self.mesh, _prepare, x, *settings)
        bandwidth = self._bandwidth(state)
        if self.repellers is not None:
            repellers = self._project(self.repellers.astype(dtype))
            of_repellers = split_over_devices(self.mesh, _prepare, repellers, *settings)
            join = lambda *parts: jnp.concatenate(parts)
            prepared = jax.tree.map(join, prepared, of_repellers[2])
        kernel = self.kernel.with_bandwidth(bandwidth)
        force_at = lambda x, kernel, prepared: kernel.force(x, prepared)
        force = split_over_devices(self.mesh, force_at, x, kernel, prepared)
        update, opt_state = force, state.opt_state
        if self.optimizer is not None:
            with jax.numpy_dtype_promotion("standard"):  # Optax breaks "strict", if set
                # Optax descends; the force points uphill.
                update, opt_state = self.optimizer.update(-force, opt_state, x)
        update = jnp.asarray(update, dtype)
        if self.factor is not None:
            update = jnp.asarray(self.factor, dtype) * update
        if self._is_noisy:
            number = state.step.astype(dtype)
            update = update + langevin_update(key, number, scores, self.langevin)
        update = self._project(update)
        new = SVGDState(x + update, opt_state, bandwidth, state.step + 1)
        sizes = jnp.mean(values), rms(force), rms(update)
        return new, SVGDInfo(*sizes, bandwidth, beta, new.step)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        point = jax.ShapeDtypeStruct(shape, jax.dtypes.canonicalize_dtype(float))
        jax.eval_shape(self.kernel.project, point)  # or ValueError
        if self.project is not None:
            check_projection("SVGD", self.project, shape)
        if self.repellers is not None and self.repellers.shape[1:] != shape:
            raise ValueError(
                f"`repellers` hold points of shape {self.repellers.shape[1:]}, but "
                f"`particles` of shape {shape}: give the same shape."
            )

    def check(self, log_density: LogDensity, particles: Particles) -> None:
        self.kernel.check(log_density, particles)

    def _project(self, points: Particles) -> Particles:
        return jax.vmap(self.project or self.kernel.project)(points)

    def _bandwidth(self, state: SVGDState) -> Scalar:
        rule = self.kernel.bandwidth
        if not isinstance(rule, AbstractBandwidth):
            return jnp.asarray(rule, state.particles.dtype)
        return cond_if_any_run(
            state.step % rule.every == 0,
            lambda: measured_bandwidth(self.kernel, state.particles),
            state.bandwidth,
        )

    @property
    def _is_noisy(self) -> bool:
        return not (isinstance(self.langevin, int | float) and self.langevin == 0)


def _prepare(points, log_density, kernel, beta, score_clip):
    """Return log densities, scores (tempered and clipped), and `kernel.prepare`."""
    values, scores = jax.vmap(jax.value_and_grad(log_density))(points)
    scores = beta * clip_norms(scores, score_clip)
    return values, scores, kernel.prepare(points, scores)


@check_arguments
def annealed_svgd(
    kernel: AbstractKernel,
    num_steps: int | Int[Array, ""],
    step_size: float,
    annealing: Geometric | None = None,
    **more: Any,
) -> SVGD:
    """Return SVGD from hot to the target in equal factors of the temperature.

    While hot, the modes overlap and the start is forgotten; their weights freeze where
    the barrier closes. Steps follow the thermal width, without momentum; `step_size` is
    that at the target, in the units of the points. By default 80 % of the steps anneal.
    More arguments are those of `SVGD`.
    """
    if annealing is None:
        annealing = Geometric(max(1, round(0.8 * num_steps)), start=0.01)
    adam = vector_adam(thermal(step_size, annealing, num_steps), b1=0.0, b2=0.9)
    return SVGD(kernel, adam, annealing=annealing, **more)
