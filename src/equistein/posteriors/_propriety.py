"""Whether a posterior falls off far away, as a normalizable density must."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein.posteriors._parameters import Parameters
from equistein.posteriors._standardized import StandardizedDensity

_NEAR, _FAR = 1e4, 1e10  # widths from the points looked from
_NUM_POINTS = 4


def check_proper(
    density: StandardizedDensity, parameters: Parameters, points: Float[Array, "n dim"]
) -> None:
    r"""Raise unless the density falls faster than $1 / |z_i|$ along each coordinate.

    Looks from a few points 10^4 and 10^10 widths away, both ways; where something
    overflows nothing is said, and a density may still run away aslant.

    Args:
        density: The log density of coordinates in widths of the posterior.
        parameters: What the coordinates are.
        points: Coordinates of likely points.

    Raises:
        ValueError: If it does not, naming the parameter.
    """
    free = np.isinf(parameters.periods)
    near, far = (np.asarray(_along(density, points[:_NUM_POINTS], t)) for t in
                 (_NEAR, _FAR))  # fmt: skip
    with np.errstate(invalid="ignore"):
        stays = far - near > -math.log(_FAR / _NEAR)
    stays &= np.isfinite(near) & np.isfinite(far)
    stays = np.any(stays, axis=(0, 1)) & free
    if np.any(stays):
        i = int(np.argmax(stays))
        raise runs_away(parameters, i, "does not fall off there")


def runs_away(parameters: Parameters, index: int, how: str) -> ValueError:
    """Return the error of a posterior that has no finite integral."""
    sizes = np.cumsum([math.prod(shape) for shape in parameters.free_shapes])
    name = parameters.names[int(np.searchsorted(sizes, index, side="right"))]
    return ValueError(
        f"the posterior runs away along '{name}': its density {how}, so that it cannot "
        "be normalized. Give a proper prior, one that integrates to 1, to every "
        "parameter, those of components that hold no data included."
    )


@eqx.filter_jit
def _along(
    density: StandardizedDensity, points: Float[Array, "n dim"], distance: float
) -> Float[Array, "point way dim"]:
    """Return the log density away from points, each way along each coordinate."""
    dim = points.shape[1]
    steps = distance * jnp.stack([jnp.eye(dim), -jnp.eye(dim)]).astype(points.dtype)
    look = lambda point: jax.lax.map(
        lambda step: density(point + step), steps.reshape(-1, dim), batch_size=64
    )
    return jax.vmap(look)(points).reshape(len(points), 2, dim)
