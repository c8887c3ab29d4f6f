"""The polynomials that a group leaves as they are."""

import functools
import itertools
import math
import operator

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from equistein.groups._base import AbstractGroup

_FEW_ELEMENTS = 8  # drawn at random: what they all keep, the group keeps


def invariant_polynomials(
    group: AbstractGroup, degree: int, shape: tuple[int, ...]
) -> list[tuple[np.ndarray, np.ndarray]]:
    r"""Return a basis of the polynomials p with $p(g x) = p(x)$, degree by degree.

    The null space of $p \mapsto p \circ g - p$ on monomials, in double precision.

    Args:
        group: A group that acts linearly.
        degree: The highest degree.
        shape: The shape of a point, of D numbers.

    Returns:
        For each degree with invariants the exponents of its monomials, `(monomial, D)`,
        and the coefficients of the invariants, `(invariant, monomial)`.
    """
    try:
        hash(group)
    except TypeError:  # a custom group that holds arrays is solved for each time
        return _solve.__wrapped__(group, degree, shape)
    return _solve(group, degree, shape)


@functools.lru_cache(16)
def _solve(
    group: AbstractGroup, degree: int, shape: tuple[int, ...]
) -> list[tuple[np.ndarray, np.ndarray]]:
    size = math.prod(shape)
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        elements = group.sample(jr.key(0), _FEW_ELEMENTS)
        if group.order is not None and group.order <= _FEW_ELEMENTS:
            elements = group.elements()
        num = math.comb(size + degree - 1, degree) + 8
        points = np.random.default_rng(0).normal(size=(num, *shape))
        points = group.project_points(jnp.asarray(points))
        copies = jax.vmap(jax.vmap(group.act, (0, None)), (None, 0))(elements, points)
        points, copies = np.asarray(points), np.asarray(copies)
    points, copies = points.reshape(num, -1), copies.reshape(num, -1, size)
    found = []
    for each in range(1, degree + 1):
        chosen = itertools.combinations_with_replacement(range(size), each)
        exponents = np.array([np.bincount(row, minlength=size) for row in chosen])
        # Scaled so that rotations of points rotate them.
        weights = 1 / np.sqrt(np.prod(np.vectorize(math.factorial)(exponents), axis=1))
        before = weights * monomials(points, exponents)
        changes = weights * monomials(copies, exponents) - before[:, None]
        rows = _null_space(before, changes.reshape(-1, len(exponents)))
        if len(rows):
            found.append((exponents, rows * weights))
    if not found:
        raise ValueError(f"No polynomial up to degree {degree} is invariant: raise it.")
    return found


def monomials(points: np.ndarray, exponents: np.ndarray) -> np.ndarray:
    """Return the monomials of each point, `(..., D)`, as `(..., monomial)`."""
    values = [points[..., [i]] ** column for i, column in enumerate(exponents.T)]
    return functools.reduce(operator.mul, values)


def _null_space(values: np.ndarray, changes: np.ndarray) -> np.ndarray:
    """Return rows that the changes vanish along, where the values do not."""
    _, sizes, seen = np.linalg.svd(values, full_matrices=False)
    seen = seen[sizes > 1e-8 * sizes[0]]
    _, sizes, axes = np.linalg.svd(changes @ seen.T, full_matrices=True)
    sizes = np.append(sizes, np.zeros(len(axes) - len(sizes)))
    return axes[sizes < 1e-8 * max(sizes[0], 1)] @ seen
