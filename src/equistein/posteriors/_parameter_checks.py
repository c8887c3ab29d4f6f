"""Checks of what `Parameters` is called with the numbers of its arrays."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from equistein._numbers import is_integer
from equistein.posteriors._constraints import AbstractConstraint


def named_leaves(example: Any) -> tuple[dict[str, Array], Any]:
    """Return the arrays of a dict by their names, and the tree's structure.

    Raises:
        ValueError: If it is no dict of floating-point arrays.
    """
    if not isinstance(example, Mapping) or not example:
        raise ValueError(
            "`example` must be a dict from names to arrays, as {'mean': jnp.zeros(3)}, "
            f"but got {example!r}."
        )
    paths, structure = jax.tree_util.tree_flatten_with_path(dict(example))
    leaves = {}
    for path, leaf in paths:
        name = "/".join(str(getattr(part, "key", part)) for part in path)
        try:
            array = jnp.asarray(leaf)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"`example` needs an array for '{name}', but got {leaf!r}: {error}."
            ) from None
        _check_numbers(name, array)
        leaves[name] = array
    with jax.numpy_dtype_promotion("standard"):
        dtype = jnp.result_type(*leaves.values())
    return {name: leaf.astype(dtype) for name, leaf in leaves.items()}, structure


def _check_numbers(name: str, array: Array) -> None:
    if not jnp.issubdtype(array.dtype, jnp.floating):
        raise ValueError(
            f"`example` needs floating-point numbers, but '{name}' has {array.dtype}. "
            "Write its numbers with a point; if the parameter is discrete, "
            "marginalise: sum the density over its values."
        )
    if array.size == 0 or not np.all(np.isfinite(np.asarray(array, float))):
        raise ValueError(
            f"`example` needs finite numbers, at least one, but '{name}' is {array}."
        )


def check_names(argument: str, names: Any, leaves: Mapping[str, Array]) -> None:
    """Raise `ValueError` if an argument names an array that is not there."""
    if isinstance(names, str):
        raise ValueError(
            f"`{argument}` needs several names, as ['{names}'], but got '{names}'."
        )
    for name in names:
        if name not in leaves:
            raise ValueError(
                f"`{argument}` names '{name}', which `example` does not have: it has "
                f"{', '.join(leaves)}."
            )


def constraints_by_name(
    leaves: Mapping[str, Array], **given: Mapping[str, AbstractConstraint]
) -> dict[str, AbstractConstraint]:
    """Return the constraint of each array that has one, of several arguments.

    Raises:
        ValueError: If an array has two, or its example is not inside.
    """
    found, said_by = {}, {}
    for argument, constraints in given.items():
        for name, constraint in constraints.items():
            if name in found:
                raise ValueError(
                    f"'{name}' is named by `{said_by[name]}` and by `{argument}`: give "
                    "one or the other."
                )
            found[name], said_by[name] = constraint, argument
    for name, constraint in found.items():
        allowed = leaves[name].ndim > 0 or said_by[name] != "simplex"
        if not (allowed and bool(constraint.allows(leaves[name]))):
            raise ValueError(
                f"`{said_by[name]}` asks of '{name}' {constraint.meaning}, but in "
                f"`example` it is {leaves[name]}. Give an example inside."
            )
    return found


def label_axes(
    exchangeable: Any, leaves: Mapping[str, Array]
) -> tuple[dict[str, tuple[int, ...]], int]:
    """Return the axes of the labels of each array that has some, and their number.

    Raises:
        ValueError: If an axis is out of range, or the lengths differ or are below 2.
    """
    if not isinstance(exchangeable, Mapping):
        raise ValueError(
            "`exchangeable` must be a dict from names to the axis of the labels, as "
            f"{{'mean': 0}}, but got {exchangeable!r}."
        )
    check_names("exchangeable", exchangeable, leaves)
    found, lengths = {}, {}
    for name, axes in exchangeable.items():
        axes = tuple(axes) if isinstance(axes, Sequence) else (axes,)
        ndim = leaves[name].ndim
        if not axes or any(not is_integer(a) or not -ndim <= a < ndim for a in axes):
            raise ValueError(
                f"`exchangeable` needs axes of '{name}', whose shape is "
                f"{leaves[name].shape}, but got {exchangeable[name]!r}."
            )
        found[name] = tuple(sorted({int(axis) % ndim for axis in axes}))
        lengths |= {f"'{name}' along {a}": leaves[name].shape[a] for a in found[name]}
    if len(set(lengths.values())) > 1:
        described = ", ".join(f"{where} has {n}" for where, n in lengths.items())
        raise ValueError(
            f"`exchangeable` axes must be equally long, but {described}. Labels of "
            "another number are another symmetry: leave them out."
        )
    num = next(iter(lengths.values()), 0)
    if lengths and num < 2:
        raise ValueError(
            "`exchangeable` needs at least 2 labels to swap, but "
            f"{next(iter(lengths))} has {num}. Leave `exchangeable` out."
        )
    return found, num


def check_signs(
    signed: bool,
    axes: Mapping[str, tuple[int, ...]],
    constraints: Mapping[str, AbstractConstraint],
    wrapped: Mapping[str, Any],
) -> None:
    """Raise `ValueError` if signs cannot change."""
    if not signed:
        return
    if not axes:
        raise ValueError(
            "`signed` says that the labels named by `exchangeable` may change their "
            "signs, but none are named: name them."
        )
    for name in axes:
        if (name in constraints and name not in wrapped) or len(axes[name]) > 1:
            raise ValueError(
                f"`signed` labels need parameters that are free along one axis, but "
                f"'{name}' is not: leave out `signed`, or the constraint."
            )


def check_axes_kept(
    name: str, axes: tuple[int, ...], shape: tuple[int, ...], num: int
) -> None:
    """Raise `ValueError` if a constraint's free numbers lose the axes of labels."""
    if any(axis >= len(shape) or shape[axis] != num for axis in axes):
        raise ValueError(
            f"`exchangeable` names the axes {axes} of '{name}', but its free numbers "
            f"have shape {shape}: on them a swap does not swap coordinates. Choose "
            "another parametrization, or other axes."
        )


def period_of(name: str, period: Any) -> float:
    """Return a period as a number.

    Raises:
        ValueError: If it is not one above 0.
    """
    try:
        number = float(period)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 < number < math.inf:
        raise ValueError(
            f"`periodic` needs a period > 0 for '{name}', but got {period!r}. Leave "
            "out what does not come again."
        )
    return number
