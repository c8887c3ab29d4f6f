"""New points by reverse diffusion: steps of particles while the noise falls."""

import abc
import dataclasses
from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int

from equistein._check_arguments import accept_integer_key, check_arguments
from equistein._numbers import check_integers, check_positive, check_score_clip
from equistein._types import Key, Particles, Scalar
from equistein.diffusion._noise_energy import AbstractNoiseEnergy
from equistein.kernels import AbstractKernel, measured_bandwidth
from equistein.samplers import clip_norms, NonFiniteError, Samples
from equistein.training import AbstractGenerator, Clamp, Condition, parts_of

Ending = Literal["mean", "flow"]  # how the least noise is taken off
Hold = Callable[[Int[Array, ""], Particles], Particles]

_CORRECTED = 6.0  # times the least noise, up to which particles take other steps
_COLD_UP_TO = 20.0  # the same for the temperature
_PARTS = {"mean": 1.0, "flow": 0.5}  # of the way to the denoised point, by the ending


@check_arguments
class StepSizes(eqx.Module):
    """Step sizes at the least noise, kept as arrays: others are not compiled again.

    Args:
        langevin: The Langevin step, in squared units of the points.
        stein: The step of the Stein force, in the same.
        score_clip: The largest norm of a score, in inverse units of the points.
    """

    langevin: Scalar
    stein: Scalar
    score_clip: Scalar

    def __init__(
        self,
        langevin: Scalar | float,
        stein: Scalar | float,
        score_clip: Scalar | float,
    ):
        steps = {"langevin": langevin, "stein": stein}
        known: dict[str, Any] = {
            name: x for name, x in steps.items() if not isinstance(x, jax.Array)
        }
        check_positive("StepSizes", zero=True, **known)
        check_score_clip("StepSizes", score_clip)
        self.langevin, self.stein = jnp.asarray(langevin), jnp.asarray(stein)
        self.score_clip = jnp.asarray(score_clip)

    def scale_steps(self, factor: Scalar) -> "StepSizes":
        """Return the same with both steps multiplied by a factor."""
        return StepSizes(self.langevin * factor, self.stein * factor, self.score_clip)

    def at(self, ratio: Scalar) -> "StepSizes":
        """Return what they are where the noise is `ratio` times the least.

        They grow with its square. Beyond six times the least noise no step is left but
        the flow from level to level: there the weights of modes are decided, which long
        chains would take from where the score is least certain.
        """
        factor = jnp.where(ratio <= _CORRECTED, ratio**2, 0)
        return StepSizes(
            self.langevin * factor, self.stein * factor, self.score_clip / ratio
        )


class AbstractDiffusionSteps(eqx.Module):
    r"""Steps of particles from the largest noise to the least.

    Step i of n goes from $\sigma_i$ to $\sigma_{i+1}$, with
    $\sigma_i = \sigma_{max}^{1-t} \sigma_{min}^t$ and $t = i / n$.
    """

    num_steps: eqx.AbstractVar[int]

    @abc.abstractmethod
    def step(
        self,
        key: Key,
        energy: AbstractNoiseEnergy,
        number: Int[Array, ""],
        particles: Particles,
    ) -> Particles:
        """Move particles from a step's level to the next; all steps share the key."""

    def scale_steps(self, factor: Scalar) -> "AbstractDiffusionSteps":
        """Return the same with its step sizes, if it has any, multiplied."""
        return self

    def level(self, energy: AbstractNoiseEnergy, number: Int[Array, ""]) -> Scalar:
        """Return the noise before a step; `num_steps` gives the least."""
        fraction = number / self.num_steps
        return energy.level(jnp.minimum(fraction, 1).astype(energy.sigma_min.dtype))

    @accept_integer_key
    def run(
        self,
        key: Key,
        energy: AbstractNoiseEnergy,
        particles: Particles,
        hold: Hold = lambda number, particles: particles,
    ) -> Particles:
        """Take all steps, from the largest noise to the least.

        Before each, particles become `hold(number, particles)`.
        """

        def body(number, particles):
            return self.step(key, energy, number, hold(number, particles))

        return jax.lax.fori_loop(jnp.zeros((), int), self.num_steps, body, particles)


def clipped_scores(
    energy: AbstractNoiseEnergy, noise: Scalar, particles: Particles, clip: Scalar
) -> Particles:
    """Return the scores at a level of noise, projected, and shortened to a norm."""
    scores = jax.vmap(jax.grad(energy.at(noise).log_density))(particles)
    return clip_norms(jax.vmap(energy.project)(scores), clip)


@check_arguments
class DiffusionSteps(AbstractDiffusionSteps):
    r"""Steps of particles while the noise falls, which Langevin steps may mend.

    Step i of n goes from $\sigma_i$ to $\sigma_{i+1}$, with
    $\sigma_i = \sigma_{max}^{1-t} \sigma_{min}^t$ and $t = i / n$:

    $$x \leftarrow x + (\delta_i + \eta_i') s_i(x) + \varepsilon_i\, \psi(x)
      + \sqrt{2 T_i \eta_i'}\, \tfrac12 (\xi_i + \xi_{i+1}), \qquad
      \delta_i = \tfrac12(\sigma_i^2 - \sigma_{i+1}^2), \quad
      \eta_i' = \delta_i + \eta_i$$

    With $\delta_i$ alone this is the reverse diffusion, which takes the blurred data
    from level to level. Where $\sigma_i \le 6 \sigma_{min}$ the Langevin step $\eta_i$
    and the step $\varepsilon_i$ of the Stein force $\psi$, both proportional to
    $\sigma_i^2$, mend what the learned score $s_i$ and the finite steps get wrong.
    Noise is shared between neighboring steps: at one level the distribution of the
    particles is then right to the second order of $\eta$, and exact for a normal
    density, so that $\eta_i$ may be as long as $\sigma_i^2$, where fresh noise would
    double the variance. The bandwidth of the kernel is taken again in each step.

    The temperature $T_i$ is `temperature` from $\sigma_i \le 20 \sigma_{min}$ on, and
    1 before: below 1 particles end nearer to the modes, most of whose weights are
    decided before.

    Args:
        step_sizes: The step sizes, at the least noise.
        kernel: The kernel of the Stein force; None leaves it out.
        temperature: The temperature T of the steps at the least noises.

    References:
        Song et al. (2021), Score-based generative modeling through stochastic
        differential equations, equation 6 and algorithm 2; Leimkuhler and Matthews
        (2013), Rational construction of stochastic numerical methods for molecular
        sampling, for the noise; Liu and Wang (2016) for the Stein force.
    """

    step_sizes: StepSizes
    num_steps: int
    kernel: AbstractKernel | None = None
    temperature: float = 1.0

    def __check_init__(self):
        check_positive("DiffusionSteps", temperature=self.temperature)

    @accept_integer_key
    def step(
        self,
        key: Key,
        energy: AbstractNoiseEnergy,
        number: Int[Array, ""],
        particles: Particles,
    ) -> Particles:
        now, after = self.level(energy, number), self.level(energy, number + 1)
        here = self.step_sizes.at(now / energy.sigma_min)
        project = jax.vmap(energy.project)
        scores = clipped_scores(energy, now, particles, here.score_clip)
        noise = project(self._noise(key, number, particles))
        flow = (now**2 - after**2) / 2
        langevin = flow + here.langevin
        moved = particles + (flow + langevin) * scores
        heat = jnp.where(now <= _COLD_UP_TO * energy.sigma_min, self.temperature, 1)
        moved += jnp.sqrt(2 * heat.astype(langevin.dtype) * langevin) * noise
        kernel = self.kernel
        if kernel is None:
            return moved

        def pushed():
            bandwidth = measured_bandwidth(kernel, particles)
            fixed = kernel.with_bandwidth(bandwidth)
            force = fixed.stein_force(particles, particles, scores)
            return moved + here.stein * force

        return jax.lax.cond(here.stein > 0, pushed, lambda: moved)

    def scale_steps(self, factor: Scalar) -> "DiffusionSteps":
        sizes = self.step_sizes.scale_steps(factor)
        return dataclasses.replace(self, step_sizes=sizes)

    def _noise(
        self, key: Key, number: Int[Array, ""], like: Particles
    ) -> Float[Array, "..."]:
        def drawn(number):
            return jr.normal(jr.fold_in(key, number), like.shape, like.dtype)

        return (drawn(number) + drawn(number + 1)) / 2


@check_arguments
class HeunSteps(AbstractDiffusionSteps):
    r"""Steps of the reverse diffusion by Heun's rule, with two evaluations each.

    With $v = \sigma_i^2 - \sigma_{i+1}^2$ and one normal $\xi$ in both lines,

    $$y = x + v\, s_i(x) + \sqrt v\, \xi, \qquad
      x \leftarrow x + \tfrac v2 \bigl(s_i(x) + s_{i+1}(y)\bigr) + \sqrt v\, \xi$$

    The variance of narrow directions is off by a share that falls with the square of
    the number of steps, where that of `DiffusionSteps` falls with the number: for
    images, which have such directions, the better use of as many evaluations. Nothing
    mends what the learned score gets wrong.

    Args:
        num_steps: The number of steps from the largest noise to the least.
        score_clip: The largest norm of a score at the least noise, in inverse units of
            the points; at other levels as much smaller as the noise is larger.

    References:
        Kloeden and Platen (1992), Numerical Solution of Stochastic Differential
        Equations, section 15.1; Karras et al. (2022), Elucidating the design space of
        diffusion-based generative models, section 3.
    """

    num_steps: int
    score_clip: Scalar

    def __init__(self, num_steps: int, score_clip: Scalar | float):
        check_integers("HeunSteps", num_steps=num_steps)
        check_score_clip("HeunSteps", score_clip)
        self.num_steps = num_steps
        self.score_clip = jnp.asarray(score_clip)

    @accept_integer_key
    def step(
        self,
        key: Key,
        energy: AbstractNoiseEnergy,
        number: Int[Array, ""],
        particles: Particles,
    ) -> Particles:
        now, after = self.level(energy, number), self.level(energy, number + 1)
        noise = jr.normal(jr.fold_in(key, number), particles.shape, particles.dtype)
        variance = now**2 - after**2
        jump = jnp.sqrt(variance) * jax.vmap(energy.project)(noise)
        clip = self.score_clip * energy.sigma_min
        here = clipped_scores(energy, now, particles, clip / now)
        moved = particles + variance * here + jump
        there = clipped_scores(energy, after, moved, clip / after)
        return particles + variance / 2 * (here + there) + jump


@check_arguments
class ReverseDiffusion(AbstractGenerator[AbstractNoiseEnergy]):
    r"""Moves points from the largest noise to the least, and takes that off too.

    The least noise $\sigma$ is taken off in one of two ways: by Tweedie's rule,
    `AbstractNoiseEnergy.denoise`, to the mean of the data that it may come from,
    $x - \sigma^2 \nabla E$, which is sharper than the data where these have a width; or
    by the probability flow, $x - \tfrac12 \sigma^2 \nabla E$, which keeps the width of
    a normal distribution to the order of $\sigma^4$.

    Args:
        steps: The steps, such as `DiffusionSteps(step_sizes, 800)` or `HeunSteps`.
        num_at_once: The number of points drawn together; their Stein forces join.
        ending: `mean`, for points such as molecules at rest; or `flow`, for densities.

    References:
        Song et al. (2021), Score-based generative modeling through stochastic
        differential equations, section 4.3, for the flow.
    """

    steps: AbstractDiffusionSteps
    shape: tuple[int, ...]
    num_at_once: int
    ending: Ending

    def __init__(
        self,
        steps: AbstractDiffusionSteps,
        shape: tuple[int, ...],
        num_at_once: int = 128,
        ending: Ending = "mean",
    ):
        check_integers("ReverseDiffusion", num_at_once=num_at_once)
        self.steps, self.shape, self.num_at_once = steps, shape, num_at_once
        self.ending = ending

    def draw(
        self, key: Key, energy: AbstractNoiseEnergy, num: int, condition: Condition
    ) -> Particles:
        label, clamp = parts_of(condition)
        model = energy if label is None else energy.condition(label)
        assert isinstance(model, AbstractNoiseEnergy)
        if clamp is not None:
            clamp.check_shape(self.shape)
        part, size = _PARTS[self.ending], (num, self.shape)
        start, points = _reverse(key, model, self.steps, size, clamp, part)
        if not np.all(np.isfinite(np.asarray(points))):
            raise NonFiniteError(
                "New samples were not finite: the energy was not learned. Train it "
                "longer, or with a smaller learning rate.",
                self.steps.num_steps,
                Samples(start, {}, 0, False, None),
            )
        return points

    def scale_steps(self, factor: Scalar) -> "ReverseDiffusion":
        return dataclasses.replace(self, steps=self.steps.scale_steps(factor))


@eqx.filter_jit
def _reverse(
    key: Key, energy: AbstractNoiseEnergy, steps: AbstractDiffusionSteps,
    size: tuple[int, tuple[int, ...]], clamp: Clamp | None, part: float,
) -> tuple[Particles, Particles]:  # fmt: skip
    """Move new points from the largest noise to the least, and take that off too."""
    # The size is their number and shape; where they start is returned too. `part` is
    # how far points go from where they are (0) to `energy.denoise` (1).
    start_key, key = jr.split(key)
    start = energy.start(start_key, *size)
    unchanged: Any = lambda number, particles: particles
    hold = unchanged if clamp is None else _Hold(key, energy, steps, clamp)
    particles = steps.run(key, energy, start, hold)
    particles = hold(jnp.asarray(steps.num_steps), particles)
    denoised = jax.vmap(energy.denoise)(particles)
    particles = particles + part * (denoised - particles)
    points = jax.vmap(energy.project)(particles)
    if clamp is None:
        return start, points
    return start, jax.vmap(lambda point: clamp.restore(point, energy.project))(points)


class _Hold(eqx.Module):
    """Sets what is held, blurred to the noise before a step."""

    key: Key
    energy: AbstractNoiseEnergy
    steps: AbstractDiffusionSteps
    clamp: Clamp

    def __call__(self, number: Int[Array, ""], particles: Particles) -> Particles:
        key = jr.fold_in(self.key, self.steps.num_steps + 2)  # steps use those before
        key = jr.fold_in(key, number)
        noise = jr.normal(key, particles.shape, particles.dtype)
        noise = self.steps.level(self.energy, number) * noise
        project = self.energy.project
        return jax.vmap(lambda x, xi: self.clamp.hold(x, project, xi))(particles, noise)
