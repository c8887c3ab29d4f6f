"""The velocities of 82 galaxies, and others from a mixture that is known."""

import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

# In 1 000 km/s. Roeder (1990), Density estimation with confidence sets exemplified by
# superclusters and voids in the galaxies, JASA 85, table 1. The 78th is 26.96 there;
# `galaxies` of R's MASS, which others took over, has 26.69.
_VELOCITIES = (
    9.172, 9.350, 9.483, 9.558, 9.775, 10.227, 10.406, 16.084, 16.170, 18.419, 18.552,
    18.600, 18.927, 19.052, 19.070, 19.330, 19.343, 19.349, 19.440, 19.473, 19.529,
    19.541, 19.547, 19.663, 19.846, 19.856, 19.863, 19.914, 19.918, 19.973, 19.989,
    20.166, 20.175, 20.179, 20.196, 20.215, 20.221, 20.415, 20.629, 20.795, 20.821,
    20.846, 20.875, 20.986, 21.137, 21.492, 21.701, 21.814, 21.921, 21.960, 22.185,
    22.209, 22.242, 22.249, 22.314, 22.374, 22.495, 22.746, 22.747, 22.888, 22.914,
    23.206, 23.241, 23.263, 23.484, 23.538, 23.542, 23.666, 23.706, 23.711, 24.129,
    24.285, 24.289, 24.366, 24.717, 24.990, 25.633, 26.960, 26.995, 32.065, 32.789,
    34.279,
)  # fmt: skip
_PLACE, _IN_MASS = 77, 26.690


def velocities() -> Float[Array, " galaxy"]:
    """Return the velocities as they were published."""
    return jnp.asarray(_VELOCITIES)


def velocities_in_mass() -> Float[Array, " galaxy"]:
    """Return them with the misprint of R's MASS."""
    return velocities().at[_PLACE].set(_IN_MASS)


def known_mixture(num_components: int) -> dict[str, Float[Array, " component"]]:
    """Return the parameters of a mixture like that of the galaxies.

    Means from 10 to 33, variances and weights that rise and fall with them.
    """
    place = jnp.linspace(0.0, 1.0, num_components)
    weight = 1 + 2 * jnp.sin(jnp.pi * place)
    return {
        "mean": 10 + 23 * place,
        "variance": 1 + 3 * place,
        "weight": weight / jnp.sum(weight),
    }


def simulated_velocities(num_components: int, num: int) -> Float[Array, " galaxy"]:
    """Return velocities drawn from the known mixture, always the same."""
    truth = known_mixture(num_components)
    which_key, key = jr.split(jr.key(0))
    which = jr.choice(which_key, num_components, (num,), p=truth["weight"])
    noise = jr.normal(key, (num,))
    return truth["mean"][which] + jnp.sqrt(truth["variance"][which]) * noise
