"""What is asked of a kernel before particles move, so that errors name the kernel."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from equistein.kernels import (
    AbstractKernel,
    AbstractScalarKernel,
)


def check_kernel(kernel: AbstractKernel, shape: tuple[int, ...]) -> None:
    """Raise unless a kernel is defined on points of a shape, and smooth at its center.

    What is averaged or pulled back is as smooth as its base. Of others only those are
    looked at whose force is taken by derivatives, pair by pair.

    Raises:
        ValueError: If it is not, naming the kernel.
    """
    point = jax.ShapeDtypeStruct(shape, jnp.zeros(()).dtype)
    jax.eval_shape(kernel.project, point)
    base = getattr(kernel, "base", kernel)
    if hasattr(base, "profile"):  # a function of the distance
        _check_slope(base, _radial_slope(base))
    elif type(base).force is AbstractScalarKernel.force:
        value = jax.eval_shape(_at_unit_bandwidth(base), point, point)
        if getattr(value, "shape", None) != ():
            raise ValueError(
                f"`{type(base).__name__}` must return one number k(x, y), but of two "
                f"points of shape {shape} it returned {value}: sum over the axes of a "
                "point. A matrix-valued kernel is an `AbstractKernel`."
            )
        _check_slope(base, _slope(base, jnp.zeros(shape)))


def _check_slope(kernel: AbstractKernel, slope: Array) -> None:
    """Raise if a kernel has no slope where a particle meets itself."""
    if not np.all(np.isfinite(slope)):
        raise ValueError(
            f"`{type(kernel).__name__}` must have a gradient at x = y, where each "
            f"particle meets itself, but there it is {np.ravel(slope)}: a kernel with "
            "a kink or a root at 0, as exp(-|x - y|), has none. Round it, as "
            "exp(-sqrt(1 + |x - y|^2)), or take RBF() or IMQ()."
        )


def _at_unit_bandwidth(kernel: AbstractKernel) -> Any:
    """Return a kernel whose bandwidth may be a rule, which needs particles."""
    return kernel.with_bandwidth(1.0)


@eqx.filter_jit
def _radial_slope(kernel: AbstractKernel) -> Array:
    return _at_unit_bandwidth(kernel).profile(jnp.zeros(()))[1]


@eqx.filter_jit
def _slope(kernel: AbstractKernel, point: Array) -> Array:
    return jax.grad(_at_unit_bandwidth(kernel), argnums=1)(point, point)
