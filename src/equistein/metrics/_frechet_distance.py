"""The Fréchet distance of two sets of features."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein._gate import finite_gate
from equistein._products import matmul
from equistein._types import Scalar


@finite_gate
def frechet_distance(
    first: Float[Array, "n feature"], second: Float[Array, "m feature"]
) -> Scalar:
    r"""The squared Wasserstein-2 distance of normals fitted to two samples.

    $$|\mu_1 - \mu_2|^2
      + \mathrm{tr}\bigl(\Sigma_1 + \Sigma_2 - 2 (\Sigma_1 \Sigma_2)^{1/2}\bigr)$$

    In the features of a classifier it sees what the classifier sees. Of n samples of
    the very same distribution it is not zero but of order features / n: compare it with
    that of as many held-out data.

    Args:
        first: Features of samples of one distribution.
        second: Features of samples of the other.

    Raises:
        ValueError: If there are fewer than two samples of one.

    References:
        Heusel et al. (2017), GANs trained by a two time-scale update rule, equation 6.
    """
    if min(len(first), len(second)) < 2:
        raise ValueError(
            "`frechet_distance` needs at least two samples of each, but got "
            f"{len(first)} and {len(second)}."
        )
    shift = jnp.mean(first, axis=0) - jnp.mean(second, axis=0)
    one, two = _covariance(first), _covariance(second)
    # The trace of the root is that of a symmetric matrix, (one^1/2 two one^1/2)^1/2.
    values, vectors = jnp.linalg.eigh(one)
    root = matmul(vectors * jnp.sqrt(jnp.maximum(values, 0))[None], vectors.T)
    squares = jnp.linalg.eigvalsh(matmul(matmul(root, two), root))
    shared = jnp.sum(jnp.sqrt(jnp.maximum(squares, 0)))
    return jnp.sum(shift**2) + jnp.trace(one) + jnp.trace(two) - 2 * shared


def _covariance(x: Float[Array, "point dim"]) -> Float[Array, "dim dim"]:
    apart = x - jnp.mean(x, axis=0, keepdims=True)
    return matmul(apart.T, apart) / (len(x) - 1)
