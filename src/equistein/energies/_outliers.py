"""Scores that tell data from what the model has not seen."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein._types import Particles
from equistein.energies._base import AbstractEnergy
from equistein.energies._joint import JointEnergy


@eqx.filter_jit
def outlier_scores(
    energy: AbstractEnergy, points: Particles
) -> dict[str, Float[Array, " n"]]:
    r"""Return scores that are high for points like the data, and low for others.

    `log_density` is $-E(x)$, `confidence` is $\max_y p(y|x)$ of a joint energy, and
    `gradient_norm` is $-|\nabla E(x)|$: the density of typical points is flat.

    Args:
        energy: The energy.
        points: The points to judge.

    References:
        Grathwohl et al. (2020), Your classifier is secretly an energy based model,
        section 5.3.
    """
    gradients = jax.vmap(jax.grad(energy))(points).reshape(len(points), -1)
    scores = {
        "log_density": jax.vmap(energy.log_density)(points),
        "gradient_norm": -jnp.sqrt(jnp.sum(gradients**2, axis=1)),
    }
    if isinstance(energy, JointEnergy):
        logits = jax.vmap(energy.logits)(points)
        scores["confidence"] = jnp.max(jax.nn.softmax(logits, axis=1), axis=1)
    return scores
