"""Products in full single precision, on a GPU too.

There JAX rounds the factors of a product to 11 bits (TF32) unless it is asked not to:
a squared distance would lose its digits, and a force a tenth of its size.
"""

import functools

import jax.numpy as jnp

einsum = functools.partial(jnp.einsum, precision="highest")
matmul = functools.partial(jnp.matmul, precision="highest")
tensordot = functools.partial(jnp.tensordot, precision="highest")
