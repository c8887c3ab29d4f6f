"""Equal optimizers as one object, so that each is compiled once.

Optax makes an optimizer of new functions at each call, and JAX compiles again for a
new function.
"""

import types
from collections.abc import Hashable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.core import Tracer
from jaxtyping import PyTree

from equistein._check_arguments import check_arguments

_LIBRARIES = ("optax", "equistein", "jax")  # their functions read no changing variables
_MOST = 256  # optimizers in the cache
_cache: dict[Hashable, optax.GradientTransformation | None] = {}


def canonical_optimizer(optimizer: optax.GradientTransformation | None) -> Any:
    """Return the first optimizer that was made with the same code and numbers.

    A custom part, such as a schedule, equals only itself: it may read variables that
    change.
    """
    try:
        key = _key(optimizer)
    except (RecursionError, TypeError, ValueError):  # a part that has no such key
        return optimizer
    if key not in _cache and len(_cache) >= _MOST:
        _cache.pop(next(iter(_cache)))
    return _cache.setdefault(key, optimizer)


def _key(value: Any) -> Hashable:
    """Return a key that two values share only if JAX would compile the same code."""
    if value is None or isinstance(value, bool | int | float | complex | str):
        return type(value), repr(value)  # 1 == 1.0 == True, and 0.0 == -0.0
    if isinstance(value, np.generic | jax.Array) and not isinstance(value, Tracer):
        numbers, weak = np.asarray(value), getattr(value, "weak_type", False)
        return type(value), numbers.dtype, numbers.shape, weak, numbers.tobytes()
    if isinstance(value, tuple):
        return type(value), *map(_key, value)
    module = getattr(value, "__module__", None) or ""
    if isinstance(value, types.FunctionType) and module.split(".")[0] in _LIBRARIES:
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        defaults = value.__defaults__, *sorted((value.__kwdefaults__ or {}).items())
        return module, value.__code__, _key(defaults), *map(_key, cells)
    return type(value), id(value)


class VectorAdamState(NamedTuple):
    """The step count, the mean gradient, and the mean square length by point."""

    num_updates: jax.Array
    mean: PyTree
    square: PyTree


@check_arguments
def vector_adam(
    learning_rate: optax.ScalarOrSchedule,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
) -> optax.GradientTransformation:
    r"""Adam whose second moment is one number per point, its mean squared gradient.

    $$m \leftarrow b_1 m + (1 - b_1) g, \quad
      v \leftarrow b_2 v + (1 - b_2) |g|^2 / d, \quad
      u = \hat m / (\sqrt{\hat v} + \epsilon)$$

    Adam divides each coordinate by its own scale, which ties it to the axes; here all
    $d$ coordinates of a point share one, so rotated gradients give rotated updates. The
    first axis counts points. A coordinate moves by about `learning_rate` in a step.

    References:
        Ling, Sharp and Jacobson (2022), VectorAdam for Rotation Equivariant Geometry
        Optimization.
    """

    def init(params):
        square = jax.tree.map(lambda x: jnp.zeros(len(x), x.dtype), params)
        mean = jax.tree.map(jnp.zeros_like, params)
        return VectorAdamState(jnp.zeros((), int), mean, square)

    def update(updates, state, params=None):
        count = state.num_updates + 1
        mean = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, state.mean, updates)
        mean_square = lambda g: jnp.mean(g.reshape(len(g), -1) ** 2, axis=1)
        squares = jax.tree.map(mean_square, updates)
        square = jax.tree.map(lambda v, s: b2 * v + (1 - b2) * s, state.square, squares)

        def direction(m, v):
            exponent = count.astype(m.dtype)
            root = jnp.sqrt(v / (1 - jnp.asarray(b2, m.dtype) ** exponent)) + eps
            corrected = m / (1 - jnp.asarray(b1, m.dtype) ** exponent)
            return corrected / root.reshape(-1, *[1] * (m.ndim - 1))

        updates = jax.tree.map(direction, mean, square)
        return updates, VectorAdamState(count, mean, square)

    return optax.chain(
        optax.GradientTransformation(init, update),
        optax.scale_by_learning_rate(learning_rate),
    )
