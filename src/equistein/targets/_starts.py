"""Where chains of a particle system start."""

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool

from equistein._types import Key, LogDensity, Particles
from equistein.features import pair_differences

_ROUNDS = 10  # of drawing again


def centered_starts(
    key: Key, num: int, shape: tuple[int, ...], reach: float
) -> Particles:
    """Draw points uniformly from a box and move their center of mass to the origin."""
    box = jr.uniform(key, (num, *shape), minval=-reach, maxval=reach)
    return box - jnp.mean(box, axis=1, keepdims=True)


def settled_starts(
    key: Key,
    log_density: LogDensity,
    num: int,
    shape: tuple[int, ...],
    reach: float,
    *,
    num_steps: int,
    step: float,
    longest: float,
    closest: float,
) -> Particles:
    """Draw clouds from a box and push apart the particles that overlap.

    Gradient descent in which each particle, not the cloud, goes at most `longest` far
    in a step: the others need not wait for the pair that is closest. Clouds in which
    two particles stay together are drawn again, up to ten times.

    Args:
        key: The source of randomness.
        log_density: Minus the energy.
        num: The number of clouds.
        shape: Their shape, `(particle, dim)`.
        reach: Half the side of the box.
        num_steps: The number of steps.
        step: The step size where forces are small.
        longest: The longest move of a particle in a step.
        closest: The distance below which two particles are stuck.
    """

    def settle(cloud):
        def descend(_, x):
            force = jax.grad(log_density)(x)
            length = jnp.sqrt(jnp.sum(force**2, axis=1, keepdims=True))
            return x + force * (longest / jnp.maximum(length, longest / step))

        return jax.lax.fori_loop(0, num_steps, descend, cloud)

    def stuck(clouds: Particles) -> Bool[Array, " cloud"]:
        squares = jax.vmap(lambda x: jnp.sum(pair_differences(x) ** 2, axis=1))(clouds)
        return ~(jnp.min(squares, axis=1) > closest**2)

    def draw(number):
        box = centered_starts(jr.fold_in(key, number), num, shape, reach)
        clouds = jax.vmap(settle)(box)
        return clouds - jnp.mean(clouds, axis=1, keepdims=True)

    def unfinished(carry):
        number, clouds = carry
        return (number < _ROUNDS) & jnp.any(stuck(clouds))

    def replace(carry):
        number, clouds = carry
        bad = stuck(clouds)[:, None, None]
        return number + 1, jnp.where(bad, draw(number), clouds)

    return jax.lax.while_loop(unfinished, replace, (1, draw(0)))[1]
