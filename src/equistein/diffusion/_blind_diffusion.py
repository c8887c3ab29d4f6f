"""Reverse diffusion by one energy that does not know the noise."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Int

from equistein._numbers import check_integers, check_positive
from equistein._types import Key, Particles, Point, Scalar
from equistein.energies import AbstractEnergy
from equistein.samplers import NonFiniteError, Samples
from equistein.training import (
    AbstractGenerator,
    AbstractStart,
    Clamp,
    Condition,
    parts_of,
)


class BlindDiffusion(AbstractGenerator[AbstractEnergy]):
    r"""Moves points from noise to data by one energy for all levels of noise.

    $$x \leftarrow x - \frac{\sigma_i^2 - \sigma_{i+1}^2}{\sigma_i^2}\,
      \sigma_0^2 \nabla E(x)
      + \frac{\sigma_{i+1}}{\sigma_i} \sqrt{\sigma_i^2 - \sigma_{i+1}^2}\; \xi_i$$

    from the largest noise to the least, $\sigma_0$, with $\sigma_i$ falling
    geometrically, and last $x - \sigma_0^2 \nabla E(x)$. Where E has learned to denoise
    all levels, $\sigma_0^2 \nabla E(x)$ is the noise in x, and this the reverse
    diffusion; it is Langevin's equation at the falling temperature
    $\sigma^2 / 2 \sigma_0^2$.

    Points start at noise added to the `start`, a law as wide as the data. A class
    starts from less noise around its own law, which tells it; held coordinates are
    given the noise of each level.

    Args:
        start: Such as `Normals(data, group)`.
        class_start: The law of each class, such as `Normals(data, group, labels, 10)`.
        noise: The noise $\sigma_0 > 0$ that the energy was trained for.
        noise_max: The largest noise.
        class_noise: The largest noise of the points of one class.
        num_steps: The number of steps.
        num_at_once: The number of points drawn together.

    Raises:
        ValueError: If a number is out of range.

    References:
        Song and Ermon (2020), Improved techniques for training score-based generative
        models; Kadkhodaie and Simoncelli (2021), Stochastic solutions for linear
        inverse problems using the prior implicit in a denoiser.
    """

    start: AbstractStart
    class_start: AbstractStart
    _: dataclasses.KW_ONLY
    noise: float = eqx.field(converter=float)
    noise_max: float = eqx.field(converter=float)
    class_noise: float = eqx.field(converter=float)
    num_steps: int = 100
    num_at_once: int = 128

    def __check_init__(self):
        owner = "BlindDiffusion"
        check_integers(owner, num_steps=self.num_steps, num_at_once=self.num_at_once)
        check_positive(owner, noise=self.noise)
        if not self.noise < min(self.noise_max, self.class_noise):
            raise ValueError(
                f"{owner} needs `noise` < `noise_max` and `class_noise`, but got "
                f"{self.noise!r}, {self.noise_max!r} and {self.class_noise!r}."
            )

    def draw(
        self, key: Key, energy: AbstractEnergy, num: int, condition: Condition
    ) -> Particles:
        label, clamp = parts_of(condition)
        if label is not None:
            energy.given(label)  # refuses what is no class
        start_key, noise_key, run_key = jr.split(key, 3)
        law = self.start if label is None else self.class_start
        start = law.sample(start_key, num, None if label is None else int(label))
        if clamp is not None:
            clamp.check_shape(start.shape[1:])
        largest = self.noise_max if label is None else self.class_noise
        project = energy.group(start.shape[1:]).project
        noise = jr.normal(noise_key, start.shape, start.dtype)
        start = start + largest * jax.vmap(project)(noise)
        points = _reversed(
            run_key, energy, start, clamp, jnp.asarray(self.noise, start.dtype),
            jnp.asarray(largest, start.dtype), jnp.asarray(self.num_steps),
        )  # fmt: skip
        if not bool(jnp.all(jnp.isfinite(points))):
            raise NonFiniteError(
                "New samples were not finite: the energy was not learned. Train it "
                "longer, or with a smaller learning rate.",
                self.num_steps,
                Samples(start, {}, 0, False, None),
            )
        return points

    def scaled(self, factor: Scalar) -> "BlindDiffusion":
        """Return the generator with steps as much shorter as there are more of them."""
        num_steps = max(1, round(self.num_steps / float(factor)))
        return dataclasses.replace(self, num_steps=num_steps)


@eqx.filter_jit
def _reversed(
    key: Key,
    energy: AbstractEnergy,
    points: Particles,
    clamp: Clamp | None,
    noise: Scalar,
    largest: Scalar,
    num_steps: Int[Array, ""],
) -> Particles:
    """Move points from the largest noise to the least, and take that off too."""
    project = energy.group(points.shape[1:]).project

    def level(number):
        return largest * (noise / largest) ** (number / num_steps).astype(noise.dtype)

    def noise_in(point: Point) -> Point:
        return noise**2 * jax.grad(energy)(point)

    def body(number, points):
        now, after = level(number), level(number + 1)
        keys = jr.split(jr.fold_in(key, number))
        taken = (now**2 - after**2) / now**2
        fresh = jax.vmap(project)(jr.normal(keys[0], points.shape, points.dtype))
        points = points - taken * jax.vmap(noise_in)(points)
        points = points + after * jnp.sqrt(taken) * fresh
        if clamp is None:
            return points
        held = after * jr.normal(keys[1], points.shape, points.dtype)
        hold = clamp.hold
        return jax.vmap(lambda x, xi: hold(x, project, xi))(points, held)

    points = jax.lax.fori_loop(0, num_steps, body, points)
    points = jax.vmap(lambda x: project(x - noise_in(x)))(points)
    if clamp is None:
        return points
    return jax.vmap(lambda x: clamp.restore(x, project))(points)
