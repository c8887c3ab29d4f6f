"""Invariance: a check of densities, and the polynomials that have it."""

import functools
import itertools
import math
import operator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PyTree

from equistein._arrays import on_device
from equistein._check_arguments import check_arguments
from equistein._types import LogDensity, Particles
from equistein.groups._base import AbstractGroup, uneven

_MAX_ELEMENTS = 64
_MAX_POINTS = 64
_DOUBLE = 1e-5  # violations in single precision above this are checked in double
_ROUNDING = 0.01  # of a constant in the log density that violations are relative to
_FEW_POINTS = 4  # and, of large groups, few elements, at which axioms are tried
_FEW_ELEMENTS = 16
_MAX_ORBIT = 1024
_NUM_KEEPING = 8  # elements: what they all keep, the group keeps


class InvarianceError(ValueError):
    """A density lacks the symmetry that a kernel relies on."""


@check_arguments
def check_invariance(
    log_density: LogDensity,
    group: AbstractGroup,
    points: Particles,
    *,
    tolerance: float | None = None,
    name: str = "log_density",
) -> None:
    r"""Raise `InvarianceError` unless $\log p(g x) = \log p(x)$ at the given points.

    All elements of a group of at most 64 are tried, else 16 Haar samples from a fixed
    key, at no more than 64 of the points, where the density is finite. Of a custom
    group it is checked first that it acts as one, by isometries.

    Args:
        log_density: The density to check, or an array-valued function.
        group: The symmetry it should have.
        points: Where to check it, stacked on axis 0.
        tolerance: The largest difference allowed, relative to $1 + |\log p(x)|$. By
            default $10 \sqrt{\epsilon}$ of the points' precision; in single precision
            $10^{-5}$ without most of a constant in log p, in double if possible.
        name: What errors call the density.
    """
    if points.ndim < 1 or len(points) == 0:
        raise ValueError("check_invariance needs `points`, at least one, on axis 0.")
    group.check_shape(points.shape[1:])
    points = on_device(np.asarray(points)[:: -(-len(points) // _MAX_POINTS)])
    worst, limit = _worst(log_density, group, points), tolerance
    if limit is None:
        limit = 10 * float(jnp.finfo(points.dtype).eps) ** 0.5
        if points.dtype == jnp.float32 and worst.relative <= limit:
            worst, limit = _in_double(log_density, group, points) or (worst, limit)
    if worst.relative > limit:
        leaves = jax.tree.leaves(worst.element)
        element = "\n".join(str(leaf.round(4)) for leaf in leaves)
        gap = abs(worst.after - worst.before)
        raise InvarianceError(
            f"`{name}` is not invariant under {group}: at the point\n"
            f"{worst.point}\nit is {worst.before:.6g}, and after the element\n"
            f"{element}\nit is {worst.after:.6g}, a violation of {gap:.3g} (relative: "
            f"{worst.relative:.1g}, allowed: {limit:.1g}). Choose the group that it "
            f"has, or correct `{name}`."
        )


def is_custom(part: Any) -> bool:
    """Return whether a module, or one that it is made of, is not the library's."""
    if isinstance(part, tuple | list):
        return any(map(is_custom, part))
    if not isinstance(part, eqx.Module):
        return False
    is_ours = type(part).__module__.startswith("equistein.")
    return not is_ours or is_custom(list(vars(part).values()))


class _Violation(NamedTuple):
    point: np.ndarray
    element: PyTree
    before: float
    after: float
    relative: float


def _worst(
    log_density: LogDensity, group: AbstractGroup, points: Particles, part: float = 1
) -> _Violation:
    """Return the largest violation, relative to values with a part of their median."""
    evaluated = _evaluate(log_density, group, points)
    elements, before, after, violations = jax.tree.map(np.asarray, evaluated)
    _check_axioms(group, violations)
    if not np.any(np.isfinite(before)):
        raise ValueError("The density is finite at none of the `points`: give others.")
    with np.errstate(invalid="ignore"):  # of infinities
        error = np.abs(after - before[None, :])
        finite = np.where(np.isfinite(before), before, 0.0)
        scale = 1 + np.abs(finite - (1 - part) * np.median(finite, axis=0))
        relative = np.where(np.isfinite(before)[None, :], error, 0.0) / scale[None, :]
    relative = np.where(np.isnan(relative), np.inf, relative)
    which, *entry = place = np.unravel_index(np.argmax(relative), relative.shape)
    return _Violation(
        point=np.asarray(points)[entry[0]],
        element=jax.tree.map(lambda leaf: leaf[which], elements),
        before=float(before[tuple(entry)]),
        after=float(after[place]),
        relative=float(relative[place]),
    )


def _in_double(
    log_density: LogDensity, group: AbstractGroup, points: Particles
) -> tuple[_Violation, float] | None:
    """Return the violation and limit in double precision, if needed and computable."""
    if _worst(log_density, group, points, _ROUNDING).relative <= _DOUBLE:
        return None
    precise = np.asarray(points, np.float64)
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        try:
            values = jax.eval_shape(log_density, jnp.asarray(precise[0]))
            if values.dtype != jnp.float64:
                return None
            return _worst(log_density, group, jnp.asarray(precise), _ROUNDING), _DOUBLE
        except (TypeError, ValueError):
            return None


@eqx.filter_jit
def _evaluate(
    log_density: LogDensity, group: AbstractGroup, points: Particles
) -> tuple[PyTree, Float[Array, "point *value"], Array, tuple[Array, ...]]:
    is_small = group.order is not None and group.order <= _MAX_ELEMENTS
    elements = group.elements() if is_small else group.sample(jr.key(0), _FEW_ELEMENTS)
    points = jax.vmap(group.project)(points)
    moved = jax.vmap(jax.vmap(group.act, (None, 0)), (0, None))(elements, points)
    if moved.shape[1:] != points.shape:
        raise ValueError(f"{group} moves {points.shape} points to {moved.shape[1:]}.")
    violations = _axioms(group, elements, points) if is_custom(group) else ()
    values = jax.vmap(log_density)
    return elements, values(points), jax.vmap(values)(moved), violations


_AXIOMS = (
    "linearity, act(g, x + v) = act(g, x) + push(g, v), `push` by default `act`",
    "isometry, |push(g, v)| = |v|",
    "inverse, act(inverse(g), act(g, x)) = x",
    "composition, act(compose(h, g), x) = act(h, act(g, x))",
    "closure, act(g, act(h, x)) = act(k, x) for one k of `elements`",
    "sampling, each of `sample` acts as one of `elements`",
    "order: as many `elements`, the identity first, all equally often",
)


def _check_axioms(group: AbstractGroup, violations: tuple[np.ndarray, ...]) -> None:
    """Raise `ValueError` if an axiom of an action is violated by more than rounding."""
    for axiom, errors in zip(_AXIOMS, violations, strict=False):
        limit = max(10 * float(jnp.finfo(errors.dtype).eps) ** 0.5, _DOUBLE)
        if not np.max(errors) <= limit:  # or NaN
            raise ValueError(
                f"{group} does not act as a group on these points. The axiom of {axiom}"
                f", is violated by {np.max(errors):.2g} of their size. Correct the "
                "method that it names, or the `order`."
            )


def _axioms(
    group: AbstractGroup, elements: PyTree, points: Particles
) -> tuple[Float[Array, " element"], ...]:
    """Return by how much, relative to points, each axiom is violated."""
    # It is the median over some points, as others may lie where an action wraps.
    points = points[:: -(-len(points) // _FEW_POINTS)]
    following = jax.tree.map(lambda leaf: jnp.roll(leaf, 1, axis=0), elements)

    def errors(g, h, x):
        v = group.project(uneven(x))
        relative = lambda gap, to: jnp.linalg.norm(gap) / (jnp.linalg.norm(to) + 1e-6)
        gx, moved = jax.jvp(lambda x: group.act(g, x), (x,), (v,))
        pushed, composed = group.push(g, v), group.act(group.compose(h, g), x)
        return (
            relative(moved - pushed, v),
            relative(jnp.linalg.norm(pushed) - jnp.linalg.norm(v), v),
            relative(group.act(group.inverse(g), gx) - x, x),
            relative(composed - group.act(h, gx), x),
        )

    over = jax.vmap(jax.vmap(errors, (None, None, 0)), (0, 0, None))
    errors_at = over(elements, following, points)
    violations = tuple(jnp.median(error, axis=1) for error in errors_at)
    if group.order is None or group.order > _MAX_ORBIT:
        return violations
    return (*violations, *_membership(group, elements, points))


def _membership(
    group: AbstractGroup, elements: PyTree, points: Particles
) -> tuple[Float[Array, " element"], ...]:
    """Return violations by products, samples and elements, compared with orbits."""
    move, orbits = jax.vmap(group.act, (None, 0)), jax.vmap(group.orbit)(points)
    length = lambda x, axes: jnp.sqrt(jnp.sum(x**2, axis=tuple(range(axes, x.ndim))))

    def nearest_and_copies(moved):
        gaps = length(orbits - moved[:, None], 2) / (length(points, 1) + 1e-6)[:, None]
        copies = jnp.sum(gaps < 1e-3, axis=1).astype(gaps.dtype)
        return jnp.median(jnp.min(gaps, axis=1)), jnp.median(copies)

    def of_products(g):
        moved = move(g, points)
        gaps, copies = jax.vmap(lambda h: nearest_and_copies(move(h, moved)))(elements)
        return jnp.max(gaps), copies

    drawn = group.sample(jr.key(0), _FEW_ELEMENTS)
    of_samples, _ = jax.vmap(lambda g: nearest_and_copies(move(g, points)))(drawn)
    closure, copies = jax.lax.map(of_products, elements)
    moved = jnp.median(length(orbits[:, 0] - points, 1) / (length(points, 1) + 1e-6))
    wrong = abs(orbits.shape[1] - (group.order or 0)) + moved + jnp.ptp(copies)
    return closure, of_samples, wrong[None]


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
        elements = group.sample(jr.key(0), _NUM_KEEPING)
        if group.order is not None and group.order <= _NUM_KEEPING:
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
