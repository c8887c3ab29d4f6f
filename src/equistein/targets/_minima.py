"""The minima of an energy: relaxation, and the distinct ends of many relaxations."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein._gate import gate
from equistein._products import matmul
from equistein._types import LogDensity, Particles
from equistein.features import AbstractFeatures


class Minima(eqx.Module):
    """The distinct local minima of an energy, lowest first.

    Attributes:
        points: One configuration a minimum.
        energies: Its energy.
        features: Its invariant features.
    """

    points: Particles
    energies: Float[Array, " minimum"]
    features: Float[Array, "minimum feature"]


@gate
@eqx.filter_jit
def relax(
    log_density: LogDensity,
    points: Particles,
    *,
    num_steps: int = 3_000,
    step: float = 5e-3,
    longest: float = 0.05,
) -> Particles:
    """Move each point to the minimum of its basin, by plain gradient descent.

    A `step` is stable below two over the largest curvature, and moves a point by
    `longest` at most.
    """

    def descend(_, x):
        move = step * jax.grad(log_density)(x)
        length = jnp.sqrt(jnp.sum(move**2))
        return x + move * (longest / jnp.maximum(length, longest))

    return jax.vmap(lambda x: jax.lax.fori_loop(0, num_steps, descend, x))(points)


@gate
def find_minima(
    log_density: LogDensity, starts: Particles, features: AbstractFeatures
) -> Minima:
    """Relax from many starts and return the distinct ends, polished by Newton steps.

    Saddles, ends with a direction of negative curvature, are left out.

    `features` are invariant, and separate minima.
    """
    points = relax(log_density, starts)
    points, energies, lowest, steepness = _polish(log_density, points)
    described = jax.vmap(features)(points)
    good = np.isfinite(energies) & (np.asarray(steepness) < 1e-2)
    good &= np.asarray(lowest) > -1e-2
    kept: list[int] = []
    for index in np.argsort(np.asarray(energies)):
        if good[index] and all(
            np.max(np.abs(described[index] - described[other])) > 1e-2 for other in kept
        ):
            kept.append(int(index))
    which = jnp.array(kept, int)
    return Minima(points[which], energies[which], described[which])


@eqx.filter_jit
def _polish(log_density: LogDensity, points: Particles):
    def newton(x):
        shape = x.shape

        def energy(flat):
            return -log_density(flat.reshape(shape))

        def improve(_, flat):
            values, vectors = jnp.linalg.eigh(jax.hessian(energy)(flat))
            along = matmul(vectors.T, jax.grad(energy)(flat))
            # Rigid motions have no curvature.
            move = jnp.where(values > 1e-2, along / jnp.maximum(values, 1e-2), 0)
            return flat - matmul(vectors, move)

        flat = jax.lax.fori_loop(0, 10, improve, x.ravel())
        lowest = jnp.linalg.eigvalsh(jax.hessian(energy)(flat))[0]
        steepness = jnp.max(jnp.abs(jax.grad(energy)(flat)))
        return flat.reshape(shape), energy(flat), lowest, steepness

    return jax.vmap(newton)(points)
