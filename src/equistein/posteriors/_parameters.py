"""Parameters with names, shapes and constraints, as one flat point."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from equistein._check_arguments import check_arguments
from equistein._numbers import is_integer, is_number
from equistein._types import Scalar
from equistein.features import Periodic
from equistein.groups import AbstractGroup, Permutations, SignedPermutations, Trivial
from equistein.posteriors._constraints import (
    AbstractConstraint,
    Interval,
    Positive,
    Real,
    Simplex,
    Wrapped,
)


@check_arguments
class Parameters(eqx.Module):
    r"""Parameters with names, as one flat point of free real numbers.

    Exchangeable labels make the group that leaves a posterior invariant: swapping two
    labels swaps coordinates of the flat point.

    Args:
        example: A dict, or another tree such as a named tuple, of floating-point
            arrays, with the shapes, and values to start at. Nested ones have names such
            as "layer/bias", items of a list "0", "1" and so on.
        exchangeable: For each parameter with labels, such as components of a mixture,
            the axis of the labels, or several, as (0, 1) for a transition matrix. All
            have the same length, and are permuted together.
        periodic: The period of each periodic parameter, such as a phase; its values
            run from 0 to the period.
        positive: The names of those above 0.
        interval: The ends of those between two numbers.
        simplex: The names of those that are positive with sum 1 along the last axis.
            A density of them is with respect to all but the last.
        signed: Whether the posterior is also invariant when the numbers of one label
            change their signs together, as for hidden units with tanh.
        constraints: Custom maps, by name.

    Attributes:
        names: The parameters' names, in the order of the flat point.
        group: The symmetry, on flat points.
        periodic: The periods of flat points; None where nothing is periodic.
        dim: The number of coordinates of a flat point.
        num_labels: The number of labels; 0 for none.
        example: The flat point of the example.
    """

    example: Float[Array, " dim"]
    group: AbstractGroup
    periodic: Periodic | None
    constraints: tuple[AbstractConstraint, ...]
    names: tuple[str, ...] = eqx.field(static=True)
    shapes: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    free_shapes: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    axes: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    num_labels: int = eqx.field(static=True)
    signed: bool = eqx.field(static=True)
    structure: Any = eqx.field(static=True)

    def __init__(
        self,
        example: PyTree,
        *,
        exchangeable: Mapping[str, Any] | None = None,
        periodic: Mapping[str, float] | None = None,
        positive: Collection[str] = (),
        interval: Mapping[str, tuple[float, float]] | None = None,
        simplex: Collection[str] = (),
        signed: bool = False,
        constraints: Mapping[str, AbstractConstraint] | None = None,
    ):
        leaves, self.structure = _named_leaves(example)
        periodic, interval = periodic or {}, interval or {}
        names = {
            "periodic": periodic, "positive": positive, "interval": interval,
            "simplex": simplex, "constraints": constraints or {},
            "exchangeable": exchangeable or {},
        }  # fmt: skip
        for argument, named in names.items():
            _check_names(argument, named, leaves)
        by_name = _constraints_by_name(
            leaves,
            periodic={n: _wrapped(n, period) for n, period in periodic.items()},
            positive={n: Positive() for n in positive},
            interval={n: _interval(n, ends) for n, ends in interval.items()},
            simplex={n: Simplex() for n in simplex},
            constraints=constraints or {},
        )
        axes, self.num_labels = _label_axes(exchangeable or {}, leaves)
        if signed:
            _check_signs(axes, by_name)
        self.names = tuple(leaves)
        self.constraints = tuple(by_name.get(name, Real()) for name in leaves)
        self.shapes = tuple(leaf.shape for leaf in leaves.values())
        self.axes = tuple(axes.get(name, ()) for name in leaves)
        free = [
            c.inverse(x) for c, x in zip(self.constraints, leaves.values(), strict=True)
        ]
        self.free_shapes = tuple(part.shape for part in free)
        for name in axes:
            shape = self.free_shapes[self.names.index(name)]
            num = self.num_labels
            if any(axis >= len(shape) or shape[axis] != num for axis in axes[name]):
                raise ValueError(
                    f"`exchangeable` names the axes {axes[name]} of '{name}', but its "
                    f"free numbers have shape {shape}: choose another parametrization, "
                    "or other axes."
                )
        self.signed = bool(signed)
        self.example = jnp.concatenate([part.ravel() for part in free])
        self.group = Trivial()
        if self.num_labels:
            parts = tuple(zip(self.free_shapes, self.axes, strict=True))
            group = SignedPermutations if self.signed else Permutations
            self.group = group(self.num_labels, parts)
        wraps = bool(np.any(np.isfinite(self.periods)))
        self.periodic = Periodic(self.periods) if wraps else None

    def __repr__(self) -> str:
        pairs = zip(self.names, self.shapes, strict=True)
        text = ", ".join(f"{name} {shape}" for name, shape in pairs)
        return f"Parameters({text}; a flat point of {self.dim} numbers)"

    @property
    def dim(self) -> int:
        return len(self.example)

    @property
    def exchangeable(self) -> dict[str, tuple[int, ...]]:
        """The axes of the labels of each parameter that has some."""
        pairs = zip(self.names, self.axes, strict=True)
        return {name: axes for name, axes in pairs if axes}

    @property
    def periods(self) -> Float[np.ndarray, " dim"]:
        """The period of each coordinate, infinite where it is not periodic."""
        periods = [constraint.period for constraint in self.constraints]
        return np.repeat(periods, [math.prod(shape) for shape in self.free_shapes])

    @property
    def places(self) -> dict[str, Int[np.ndarray, "*free"]]:
        """The indices of each parameter's free numbers in a flat point."""
        return self._by_name(np.arange(self.dim), np.split)

    def flatten(self, tree: PyTree) -> Float[Array, " dim"]:
        """Return the flat point of a tree of values."""
        leaves, structure = jax.tree.flatten(tree)
        if structure != self.structure:
            raise ValueError(
                f"`tree` must have the names of the example, {', '.join(self.names)}, "
                f"but got {structure}."
            )
        parts = []
        for i, leaf in enumerate(leaves):
            leaf = jnp.asarray(leaf, self.example.dtype)
            if leaf.shape != self.shapes[i]:
                raise ValueError(
                    f"`tree` must have shape {self.shapes[i]} for '{self.names[i]}', "
                    f"but got {leaf.shape}. `jax.vmap(parameters.flatten)` takes many."
                )
            parts.append(self.constraints[i].inverse(leaf).ravel())
        return jnp.concatenate(parts)

    def unflatten(self, point: Float[Array, " dim"]) -> PyTree:
        """Return the tree of values of a flat point."""
        parts = self.free(point).values()
        pairs = zip(self.constraints, parts, strict=True)
        return jax.tree.unflatten(self.structure, [c.forward(u) for c, u in pairs])

    def log_jacobian(self, point: Float[Array, " dim"]) -> Scalar:
        """Return the log volume element, which a log density of flat points adds."""
        parts = self.free(point).values()
        each = [c.log_jacobian(u) for c, u in zip(self.constraints, parts, strict=True)]
        return jnp.sum(jnp.stack(each))

    def fraction_at_end(self, points: Float[Array, "n dim"]) -> dict[str, Scalar]:
        """Return by name how often a value is about to be rounded to an end."""

        def at_end(point):
            pairs = zip(self.constraints, self.free(point).items(), strict=True)
            known = {n: c.is_at_end(u) for c, (n, u) in pairs if math.isinf(c.period)}
            return jax.tree.map(jnp.any, known)

        return jax.tree.map(jnp.mean, jax.vmap(at_end)(points))

    def free(self, point: Float[Array, " dim"]) -> dict[str, Float[Array, "*free"]]:
        """Return the free numbers of each parameter, by name."""
        if point.shape != (self.dim,):
            raise ValueError(
                f"`point` must have shape ({self.dim},), but got {point.shape}. "
                "`jax.vmap` takes many points."
            )
        return self._by_name(point, jnp.split)

    def wrap(self, point: Float[Array, " dim"]) -> Float[Array, " dim"]:
        """Return the flat point with periodic coordinates inside their period."""
        return point if self.periodic is None else self.periodic.wrap(point)

    def _by_name(self, flat: Any, split: Callable[..., Any]) -> dict[str, Any]:
        """Return the numbers of each parameter, by `split` of NumPy or of JAX."""
        sizes = [math.prod(shape) for shape in self.free_shapes]
        parts = split(flat, np.cumsum(sizes)[:-1])
        named = zip(self.names, parts, self.free_shapes, strict=True)
        return {name: part.reshape(shape) for name, part, shape in named}


def _named_leaves(example: Any) -> tuple[dict[str, Array], Any]:
    """Return the arrays of a tree by their names, and the tree's structure."""
    if isinstance(example, Mapping):
        example = dict(example)
    try:
        paths, structure = jax.tree_util.tree_flatten_with_path(example)
    except ValueError as error:  # as of keys that cannot be sorted
        raise ValueError(f"`example` must be a tree of JAX: {error}") from None
    if not paths or jax.tree_util.all_leaves([example]):
        raise ValueError(
            "`example` must be a tree of arrays, as {'mean': jnp.zeros(3)}, but got "
            f"{example!r}."
        )
    leaves = {}
    for path, leaf in paths:
        name = jax.tree_util.keystr(path, simple=True, separator="/")
        if name in leaves:
            raise ValueError(f"`example` has two arrays of the name '{name}'.")
        try:
            array = jnp.asarray(leaf)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"`example` needs an array for '{name}', but got {leaf!r}: {error}."
            ) from None
        is_float = jnp.issubdtype(array.dtype, jnp.floating)
        if not is_float or not array.size or not bool(jnp.all(jnp.isfinite(array))):
            raise ValueError(
                f"`example` needs finite numbers with a point, at least one, but "
                f"'{name}' is {array} of {array.dtype}. Marginalise what is discrete."
            )
        leaves[name] = array
    with jax.numpy_dtype_promotion("standard"):
        dtype = jnp.result_type(*leaves.values())
    return {name: leaf.astype(dtype) for name, leaf in leaves.items()}, structure


def _check_names(argument: str, names: Any, leaves: Mapping[str, Array]) -> None:
    """Raise `ValueError` if an argument names an array that does not exist."""
    if isinstance(names, str):
        raise ValueError(
            f"`{argument}` needs several names, as ['{names}'], but got '{names}'."
        )
    for name in names:
        if name not in leaves:
            raise ValueError(
                f"`{argument}` names '{name}', which is no parameter: there are "
                f"{', '.join(leaves)}."
            )


def _constraints_by_name(
    leaves: Mapping[str, Array], **given: Mapping[str, AbstractConstraint]
) -> dict[str, AbstractConstraint]:
    """Return the constraint of each array that has one, of several arguments."""
    by_name: dict[str, AbstractConstraint] = {}
    argument_of: dict[str, str] = {}
    for argument, constraints in given.items():
        for name, constraint in constraints.items():
            if name in by_name:
                raise ValueError(
                    f"'{name}' is named by `{argument_of[name]}` and by `{argument}`: "
                    "give one or the other."
                )
            if not isinstance(constraint, AbstractConstraint):
                raise ValueError(
                    f"`{argument}` needs a constraint for '{name}', as "
                    f"es.posteriors.Positive(), but got {constraint!r}."
                )
            by_name[name], argument_of[name] = constraint, argument
            allowed = leaves[name].ndim > 0 or argument != "simplex"
            if not (allowed and bool(constraint.allows(leaves[name]))):
                raise ValueError(
                    f"`{argument}` asks of '{name}' {constraint.meaning}, but in "
                    f"`example` it is {leaves[name]}. Give an example inside."
                )
    return by_name


def _label_axes(
    exchangeable: Mapping[str, Any], leaves: Mapping[str, Array]
) -> tuple[dict[str, tuple[int, ...]], int]:
    """Return the axes of the labels of each array that has some, and their number."""
    by_name, lengths = {}, {}
    for name, axes in exchangeable.items():
        axes = tuple(axes) if isinstance(axes, Sequence) else (axes,)
        ndim = leaves[name].ndim
        if not axes or any(not is_integer(a) or not -ndim <= a < ndim for a in axes):
            raise ValueError(
                f"`exchangeable` needs axes of '{name}', whose shape is "
                f"{leaves[name].shape}, but got {exchangeable[name]!r}."
            )
        by_name[name] = axes = tuple(sorted({int(axis) % ndim for axis in axes}))
        lengths |= {f"'{name}' along {a}": leaves[name].shape[a] for a in axes}
    if len(set(lengths.values())) > 1:
        described = ", ".join(f"{where} has {n}" for where, n in lengths.items())
        raise ValueError(
            f"`exchangeable` axes must have equal lengths, but {described}: leave out "
            "those of another length."
        )
    num = next(iter(lengths.values()), 0)
    if lengths and num < 2:
        raise ValueError(
            "`exchangeable` needs at least 2 labels to swap, but "
            f"{next(iter(lengths))} has {num}. Leave `exchangeable` out."
        )
    return by_name, num


def _check_signs(
    axes: Mapping[str, tuple[int, ...]], constraints: Mapping[str, AbstractConstraint]
) -> None:
    """Raise `ValueError` if signs cannot change."""
    if not axes:
        raise ValueError(
            "`signed` labels must be named by `exchangeable`, but none are: name them."
        )
    for name in axes:
        constraint = constraints.get(name, Real())
        if not isinstance(constraint, Real | Wrapped) or len(axes[name]) > 1:
            raise ValueError(
                f"`signed` labels need parameters that are free along one axis, but "
                f"'{name}' is not: leave out `signed`, or the constraint."
            )


def _wrapped(name: str, period: Any) -> Wrapped:
    if not is_number(period) or not 0 < period < math.inf:
        raise ValueError(
            f"`periodic` needs a period > 0 for '{name}', but got {period!r}. Leave "
            "out what is not periodic."
        )
    return Wrapped(float(period))


def _interval(name: str, ends: Any) -> Interval:
    if np.shape(ends) != (2,):
        raise ValueError(
            f"`interval` needs two ends for '{name}', as (0, 1), but got {ends!r}."
        )
    return Interval(*ends)
