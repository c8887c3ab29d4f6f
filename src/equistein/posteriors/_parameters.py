"""Parameters with names, shapes and constraints, as one flat point."""

import math
from collections.abc import Collection, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from equistein._types import Scalar
from equistein.features import Periodic
from equistein.groups import (
    AbstractGroup,
    Permutations,
    SignedPermutations,
    Trivial,
)
from equistein.posteriors._constraints import (
    AbstractConstraint,
    Interval,
    Positive,
    Real,
    Simplex,
    Wrapped,
)
from equistein.posteriors._parameter_checks import (
    check_axes_kept,
    check_names,
    check_signs,
    constraints_by_name,
    label_axes,
    named_leaves,
    period_of,
)


class Parameters(eqx.Module):
    r"""Parameters with names, as one flat point of free real numbers.

    Knows which of them are exchangeable, and so which group leaves a posterior
    invariant: samplers and kernels move the flat point, and the swap of two labels is a
    swap of its coordinates.

    Args:
        example: A dict of floating-point arrays, whose shapes count, and whose values
            are where samplers look first. Dicts inside make names such as "layer/bias".
        exchangeable: For each parameter that has labels, such as components of a
            mixture, the axis along which they run: a number, or several, as (0, 1) for
            a transition matrix. All are as long, and swapped together.
        periodic: The period of each parameter that comes again, such as a phase; its
            values are from 0 to there.
        positive: The names of those above 0.
        interval: The ends of those between two numbers.
        simplex: The names of those that are positive with sum 1 along the last axis.
            A density of them is with respect to all but the last.
        signed: Whether the posterior also stays as it is when the numbers of one label
            change their signs together, as for hidden units with tanh.
        constraints: Custom maps, by name.

    Attributes:
        names: The parameters' names, in the order of the flat point.
        group: The symmetry, on flat points.
        periodic: What wraps flat points; None where nothing comes again.
        dim: The number of coordinates of a flat point.
        num_labels: The number of labels; 0 for none.
        example: The flat point of the example.

    Raises:
        ValueError: If an argument does not fit the arrays, with the remedy.
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
        example: Mapping[str, Any],
        *,
        exchangeable: Mapping[str, Any] | None = None,
        periodic: Mapping[str, float] | None = None,
        positive: Collection[str] = (),
        interval: Mapping[str, tuple[float, float]] | None = None,
        simplex: Collection[str] = (),
        signed: bool = False,
        constraints: Mapping[str, AbstractConstraint] | None = None,
    ):
        leaves, self.structure = named_leaves(example)
        given = {
            "periodic": periodic or {}, "positive": positive, "simplex": simplex,
            "interval": interval or {}, "constraints": constraints or {},
        }  # fmt: skip
        for argument, named in given.items():
            check_names(argument, named, leaves)
        by_name = constraints_by_name(
            leaves,
            periodic={n: Wrapped(period_of(n, p)) for n, p in (periodic or {}).items()},
            positive={n: Positive() for n in positive},
            interval={n: Interval(*ends) for n, ends in (interval or {}).items()},
            simplex={n: Simplex() for n in simplex},
            constraints=constraints or {},
        )
        axes, self.num_labels = label_axes(exchangeable or {}, leaves)
        check_signs(signed, axes, by_name, periodic or {})
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
            check_axes_kept(name, axes[name], shape, self.num_labels)
        self.signed = bool(signed)
        self.example = jnp.concatenate([part.ravel() for part in free])
        self.group = self._group()
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
        """The period of each coordinate, infinite where it does not come again."""
        pairs = zip(self.constraints, self.free_shapes, strict=True)
        return np.concatenate(
            [
                np.full(math.prod(shape), constraint.period)
                for constraint, shape in pairs
            ]
        )

    def flatten(self, tree: PyTree) -> Float[Array, " dim"]:
        """Return the flat point of a tree of values.

        Raises:
            ValueError: If the tree has other names or shapes than the example.
        """
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
        """Return the log of the volume of values that a volume of flat points has.

        To be added to a log density of the values, to have that of the flat point.
        """
        parts = self.free(point).values()
        each = [c.log_jacobian(u) for c, u in zip(self.constraints, parts, strict=True)]
        return jnp.sum(jnp.stack(each))

    def free(self, point: Float[Array, " dim"]) -> dict[str, Float[Array, "*free"]]:
        """Return the free numbers of each parameter, by name.

        Raises:
            ValueError: If the point has another shape.
        """
        if point.shape != (self.dim,):
            raise ValueError(
                f"`point` must have shape ({self.dim},), but got {point.shape}. "
                "`jax.vmap` takes many points."
            )
        sizes = [math.prod(shape) for shape in self.free_shapes]
        parts = jnp.split(point, np.cumsum(sizes)[:-1])
        named = zip(self.names, parts, self.free_shapes, strict=True)
        return {name: part.reshape(shape) for name, part, shape in named}

    def wrap(self, point: Float[Array, " dim"]) -> Float[Array, " dim"]:
        """Return the flat point with what comes again inside its period."""
        return point if self.periodic is None else self.periodic.wrap(point)

    def _group(self) -> AbstractGroup:
        if not self.num_labels:
            return Trivial()
        parts = tuple(zip(self.free_shapes, self.axes, strict=True))
        group = SignedPermutations if self.signed else Permutations
        return group(self.num_labels, parts)
