"""Check that a density has a symmetry."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PyTree

from equistein._arrays import on_device
from equistein._check_arguments import check_arguments
from equistein._types import LogDensity, Particles
from equistein.groups._base import AbstractGroup

_MAX_ELEMENTS = 64
_MAX_POINTS = 64
_DOUBLE = 1e-5  # violations in single precision above this are checked in double
_FAR = 1e-2  # the violation of an axiom that is not rounding


class InvarianceError(ValueError):
    """A density lacks the symmetry that a kernel relies on."""


@check_arguments
def check_invariance(
    log_density: LogDensity,
    group: AbstractGroup,
    points: Particles,
    *,
    tolerance: float | None = None,
) -> None:
    r"""Raise unless $\log p(g x) = \log p(x)$ at the given points.

    All elements of a group of at most 64 are tried, else 16 Haar samples from a fixed
    key, at no more than 64 of the points, where the density is finite.

    Args:
        log_density: The density to check.
        group: The symmetry it should have.
        points: Where to check it, stacked on axis 0.
        tolerance: The largest difference allowed, relative to $1 + |\log p(x)|$. By
            default $10 \sqrt{\epsilon}$ of the points' precision; in single precision
            $10^{-5}$, computed in double precision if possible.

    Raises:
        InvarianceError: With the element and the size of the largest violation.
        ValueError: If the group is invalid, or does not act on points of this shape.
    """
    if points.ndim < 1 or len(points) == 0:
        raise ValueError("check_invariance needs `points`, at least one, on axis 0.")
    group.check_shape(points.shape[1:])
    points = on_device(np.asarray(points)[:: -(-len(points) // _MAX_POINTS)])
    worst, limit = _worst(log_density, group, points), tolerance
    if limit is None:
        limit = 10 * float(jnp.finfo(points.dtype).eps) ** 0.5
        if points.dtype == jnp.float32 and _DOUBLE < worst.relative <= limit:
            worst, limit = _in_double(log_density, group, points) or (worst, limit)
    if worst.relative > limit:
        _check_action(group, points)
        leaves = jax.tree.leaves(worst.element)
        element = "\n".join(str(leaf.round(4)) for leaf in leaves)
        gap = abs(worst.after - worst.before)
        raise InvarianceError(
            f"`log_density` is not invariant under {group}: at the point\n"
            f"{worst.point}\nit is {worst.before:.6g}, and after the element\n"
            f"{element}\nit is {worst.after:.6g}, a violation of {gap:.3g} (allowed: "
            f"{limit:.1g} relative to 1 + |log p|). Choose the group this density has, "
            "or correct the density."
        )


@dataclasses.dataclass(frozen=True)
class _Violation:
    """The largest violation of a symmetry."""

    point: np.ndarray
    element: PyTree
    before: float
    after: float
    relative: float


def _worst(
    log_density: LogDensity, group: AbstractGroup, points: Particles
) -> _Violation:
    evaluated = _evaluate(log_density, group, points)
    elements, before, after = jax.tree.map(np.asarray, evaluated)
    with np.errstate(invalid="ignore"):  # of infinities
        error = np.abs(after - before[None, :])
        relative = np.where(np.isfinite(before)[None, :], error, 0.0)
        relative = relative / (1 + np.abs(before))[None, :]
    relative = np.where(np.isnan(relative), np.inf, relative)
    which, where = np.unravel_index(np.argmax(relative), relative.shape)
    return _Violation(
        point=np.asarray(points)[where],
        element=jax.tree.map(lambda leaf: leaf[which], elements),
        before=float(before[where]),
        after=float(after[which, where]),
        relative=float(relative[which, where]),
    )


def _in_double(
    log_density: LogDensity, group: AbstractGroup, points: Particles
) -> tuple[_Violation, float] | None:
    """Return the violation and the limit in double precision, if computable."""
    precise = np.asarray(points, np.float64)
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        try:
            values = jax.eval_shape(log_density, jnp.asarray(precise[0]))
            if values.dtype != jnp.float64:
                return None
            return _worst(log_density, group, jnp.asarray(precise)), _DOUBLE
        except (TypeError, ValueError):
            return None


@eqx.filter_jit
def _elements_of(group: AbstractGroup) -> PyTree:
    """Return all elements of a small group, 16 of any other."""
    if group.order is not None and group.order <= _MAX_ELEMENTS:
        return group.elements()
    return group.sample(jr.key(0), 16)


@eqx.filter_jit
def _evaluate(
    log_density: LogDensity, group: AbstractGroup, points: Particles
) -> tuple[PyTree, Float[Array, " point"], Float[Array, "element point"]]:
    elements, points = _elements_of(group), jax.vmap(group.project)(points)
    move = jax.vmap(jax.vmap(group.act, (None, 0)), (0, None))
    values = jax.vmap(log_density)
    return elements, values(points), jax.vmap(values)(move(elements, points))


def _check_action(group: AbstractGroup, points: Particles) -> None:
    """Raise `ValueError` if half of some elements and points violate an axiom."""
    axioms = _axioms(group, _elements_of(group), points[:16])
    for axiom, error in axioms.items():
        if float(jnp.median(error)) > _FAR:
            raise ValueError(
                f"{group} does not act as a group on these points: {axiom} does not "
                "hold. Correct its `act`, `compose` or `inverse`."
            )


@eqx.filter_jit
def _axioms(
    group: AbstractGroup, elements: PyTree, points: Particles
) -> dict[str, Float[Array, "element point"]]:
    """Return by how much, relative to a point, axioms of an action are violated."""
    after = jax.tree.map(lambda leaf: jnp.roll(leaf, 1, axis=0), elements)

    def errors(g, h, x):
        size = jnp.linalg.norm(x) + jnp.finfo(x.dtype).tiny
        away = lambda a, b: jnp.linalg.norm(a - b) / size
        gx = group.act(g, x)
        once, twice = group.act(group.compose(h, g), x), group.act(h, gx)
        pushed = jnp.linalg.norm(group.push(g, x))
        return {
            "|g v| = |v| for a displacement v": jnp.abs(pushed - size) / size,
            "act(inverse(g), act(g, x)) = x": away(group.act(group.inverse(g), gx), x),
            "act(compose(h, g), x) = act(h, act(g, x))": away(once, twice),
        }

    projected = jax.vmap(group.project)(points)
    over = jax.vmap(jax.vmap(errors, (None, None, 0)), (0, 0, None))
    return over(elements, after, projected)
