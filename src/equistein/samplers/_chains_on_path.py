"""Chains along a path, each temperature with parameters of its own."""

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Int, Key as Keys

from equistein._types import Key, Particles, Scalar
from equistein.samplers._cond import cond_if_any
from equistein.samplers._geometric_path import GeometricPath, PathWalker
from equistein.samplers._markov_chains import AbstractMarkovChains, ChainParameters


def first_parameters(
    inner: AbstractMarkovChains, particles: Particles, num: int
) -> ChainParameters:
    """Return the parameters of so many temperatures, before the density is known."""
    return jax.tree.map(
        lambda leaf: jnp.broadcast_to(leaf[None], (num, *leaf.shape)),
        inner.parameters(particles),
    )


def tuned_if(
    due: Bool[Array, ""],
    key: Key,
    inner: AbstractMarkovChains,
    path: GeometricPath,
    points: Float[Array, "temperature chain *shape"],
    betas: Float[Array, " temperature"],
    parameters: ChainParameters,
) -> tuple[ChainParameters, Int[Array, " temperature"]]:
    """Tune the parameters of each temperature to its density, if it is time.

    Returns:
        The parameters, and the evaluations of the score that it took, a chain.
    """
    num = len(betas)
    return cond_if_any(
        due,
        lambda: jax.vmap(inner.tune, (0, None, 0, 0, 0))(
            jr.split(key, num), path, points, betas, parameters
        ),
        (parameters, jnp.zeros(num, int)),
    )


def moved(
    keys: Keys[Array, " chain"],
    inner: AbstractMarkovChains,
    path: GeometricPath,
    walkers: PathWalker,
    beta: Scalar,
    parameters: ChainParameters,
) -> tuple[
    PathWalker, Float[Array, " chain"], Int[Array, " chain"], Bool[Array, " chain"]
]:
    """Move each chain of one temperature, with a key of its own.

    Returns:
        The walkers, the probabilities of acceptance, the evaluations of the score, and
        whether the density was a number where they went.
    """
    return jax.vmap(
        lambda key, walker: inner.move(key, path, walker, beta, parameters)
    )(keys, walkers)
