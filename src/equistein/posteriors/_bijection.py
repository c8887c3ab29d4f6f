"""A map of NumPyro as a constraint."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein._types import Scalar
from equistein.posteriors._constraints import AbstractConstraint


class Bijection(AbstractConstraint):
    """The map of NumPyro, from `biject_to(support)`, onto a support.

    Args:
        transform: The map, as of `numpyro.distributions.biject_to`.
    """

    meaning: ClassVar[str] = "a value of the site's support"
    transform: Any

    def __init__(self, transform: Any):
        self.transform = jax.tree.map(
            lambda x: jnp.asarray(x) if isinstance(x, np.ndarray) else x, transform
        )

    def forward(self, free: Float[Array, "*free"]) -> Float[Array, "*value"]:
        return self.transform(free)

    def inverse(self, value: Float[Array, "*value"]) -> Float[Array, "*free"]:
        return self.transform._inverse(value)

    def log_jacobian(self, free: Float[Array, "*free"]) -> Scalar:
        return jnp.sum(self.transform.log_abs_det_jacobian(free, self.transform(free)))

    def allows(self, value: Float[Array, "*value"]) -> Array:
        return jnp.all(jnp.isfinite(self.inverse(value)))
