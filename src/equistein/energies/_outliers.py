"""Scores that tell data from what the model has not seen."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein._types import Particles
from equistein.energies._base import AbstractEnergy
from equistein.energies._joint import JointEnergy

_AT_ONCE = 256  # images take much memory


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

    def of_one(point):
        value, gradient = jax.value_and_grad(energy)(point)
        scores = {
            "log_density": -value,
            "gradient_norm": -jnp.sqrt(jnp.sum(gradient**2)),
        }
        if isinstance(energy, JointEnergy):
            scores["confidence"] = jnp.max(jax.nn.softmax(energy.logits(point)))
        return scores

    return jax.lax.map(of_one, points, batch_size=_AT_ONCE)
