"""New points by reverse diffusion."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Int

from equistein._check_arguments import check_arguments
from equistein._numbers import check_integers
from equistein._types import Key, Particles, Scalar
from equistein.diffusion._noise_energy import AbstractNoiseEnergy
from equistein.diffusion._steps import AbstractDiffusionSteps
from equistein.samplers import NonFiniteError, Samples
from equistein.training import AbstractGenerator, Clamp, Condition, parts_of

Ending = Literal["mean", "flow"]
"""How the least noise is taken off."""

_PARTS = {"mean": 1.0, "flow": 0.5}


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
        shape: The shape of a point.
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
        if ending not in _PARTS:
            raise ValueError(
                f"ReverseDiffusion needs `ending`, mean or flow, but got {ending!r}."
            )
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
        steps = self.steps.scale_steps(factor)
        return ReverseDiffusion(steps, self.shape, self.num_at_once, self.ending)


@eqx.filter_jit
def _reverse(
    key: Key,
    energy: AbstractNoiseEnergy,
    steps: AbstractDiffusionSteps,
    size: tuple[int, tuple[int, ...]],
    clamp: Clamp | None,
    part: float,
) -> tuple[Particles, Particles]:
    """Move new points from the largest noise to the least, and take that off too.

    The size is their number and shape; where they start is returned too. `part` is how
    far points go from where they are (0) to `energy.denoise` (1).
    """
    start_key, key = jr.split(key)
    start = energy.start(start_key, *size)
    hold = _unchanged if clamp is None else _Hold(key, energy, steps, clamp)
    particles = steps.run(key, energy, start, hold)
    particles = hold(jnp.asarray(steps.num_steps), particles)
    denoised = jax.vmap(energy.denoise)(particles)
    particles = particles + part * (denoised - particles)
    points = jax.vmap(energy.project)(particles)
    if clamp is None:
        return start, points
    return start, jax.vmap(lambda point: clamp.restore(point, energy.project))(points)


def _unchanged(number: Int[Array, ""], particles: Particles) -> Particles:
    return particles


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
