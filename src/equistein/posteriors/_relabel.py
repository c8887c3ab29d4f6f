"""Draws with their labels as close to those of one reference as can be."""

import dataclasses
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PyTree

from equistein._gate import gate
from equistein._types import Point
from equistein.groups import SignedPermutation
from equistein.posteriors._parameters import Parameters
from equistein.posteriors._pooling import pooled, without_signs
from equistein.posteriors._posterior_samples import check_samples, PosteriorSamples

_MOST_TRIED = 720  # elements: all of six labels
_MORE_PASSES = 2


@gate
def relabel(
    samples: PosteriorSamples, reference: PyTree | None = None
) -> PosteriorSamples:
    r"""Return the draws with labels that can be read: near those of one reference.

    $$x \mapsto g_* x, \qquad g_* = \arg\min_g \lVert (g x - r) / h \rVert$$

    with h the widths of relabelled draws, the same for all labels: first those of all
    draws, then in two more passes those of the pass before. All elements are tried up
    to 720; beyond, labels are assigned by the Hungarian algorithm, of a matrix whose
    rows and columns both are labels only by its diagonal.

    For reading only: where components overlap, the choice of a reference decides what
    is seen, and means of relabelled draws are no means of the posterior. What does not
    depend on labels, `samples.invariants()`, needs none of this.

    Args:
        samples: The draws.
        reference: A tree of values. By default first the draw of highest log density,
            its labels in the order of their first number, then the mean of the draws
            of the pass before.

    Raises:
        ValueError: If the samples are not those of a posterior, or the reference has
            other names or shapes.
    """
    check_samples("relabel", samples)
    parameters: Parameters = samples.posterior.parameters
    if not parameters.num_labels:
        return samples
    draws = samples.points.reshape(-1, parameters.dim)
    if reference is None:
        best = draws[jnp.argmax(samples.log_density.ravel())]
        point = parameters.group.canonicalize(best)
    else:
        point = parameters.flatten(reference)
    order = parameters.group.order
    small = order is not None and order <= _MOST_TRIED
    nearest = _nearest_of_all if small else _nearest_by_assignment
    draws = nearest(parameters, point, _first_widths(parameters, draws), draws)
    for _ in range(_MORE_PASSES):
        middle, width = _middle_and_widths(parameters, point, draws)
        point = middle if reference is None else point
        draws = nearest(parameters, point, width, draws)
    points = draws.reshape(samples.points.shape)
    return dataclasses.replace(samples, points=points, relabelled=True)


def _first_widths(
    parameters: Parameters, draws: Float[Array, "n dim"]
) -> Float[Array, " dim"]:
    """Return the widths of coordinates over all labels."""
    center = pooled(parameters, jnp.mean(draws, axis=0))
    center = without_signs(parameters, center)
    squares = jnp.mean((draws - center[None]) ** 2, axis=0)
    return _positive(jnp.sqrt(pooled(parameters, squares)))


def _middle_and_widths(
    parameters: Parameters, point: Float[Array, " dim"], draws: Float[Array, "n dim"]
) -> tuple[Float[Array, " dim"], Float[Array, " dim"]]:
    """Return the mean of relabelled draws, and the widths of a label around it."""
    gaps = jax.vmap(lambda draw: _gaps(parameters, draw, point))(draws)
    middle = jnp.mean(gaps, axis=0)
    squares = jnp.mean((gaps - middle[None]) ** 2, axis=0)
    return point + middle, _positive(jnp.sqrt(pooled(parameters, squares)))


def _positive(width: Float[Array, " dim"]) -> Float[Array, " dim"]:
    return jnp.where(width > 0, width, 1)


def _gaps(parameters: Parameters, x: Any, y: Any, where: Any = slice(None)) -> Array:
    """Return the shortest way from y to x, in some coordinates, on circles too."""
    periods = np.asarray(parameters.periods)[where]
    wraps = np.isfinite(periods)
    periods = jnp.asarray(np.where(wraps, periods, 1), jnp.asarray(x).dtype)
    gap = x - y
    return jnp.where(wraps, gap - periods * jnp.round(gap / periods), gap)


@eqx.filter_jit
def _nearest_of_all(
    parameters: Parameters,
    reference: Float[Array, " dim"],
    width: Float[Array, " dim"],
    draws: Float[Array, "n dim"],
) -> Float[Array, "n dim"]:
    """Return of each draw's orbit the point nearest to the reference."""
    elements = parameters.group.elements()

    def squared(point: Point) -> Array:
        return jnp.sum((_gaps(parameters, point, reference) / width) ** 2)

    def nearest(point):
        orbit = jax.vmap(parameters.group.act, (0, None))(elements, point)
        return orbit[jnp.argmin(jax.vmap(squared)(orbit))]

    return jax.lax.map(nearest, draws)


@eqx.filter_jit
def _nearest_by_assignment(
    parameters: Parameters,
    reference: Float[Array, " dim"],
    width: Float[Array, " dim"],
    draws: Float[Array, "n dim"],
) -> Float[Array, "n dim"]:
    """Return each draw with its labels assigned to the reference's at least cost."""
    places = label_places(parameters)
    signs = jnp.asarray([1.0, -1.0] if parameters.signed else [1.0], draws.dtype)

    def cost(new, old, sign, point):
        gap = _gaps(parameters, sign * point[old], reference[new], places[0])
        return jnp.sum((gap / width[new]) ** 2)

    each = jax.vmap(cost, (None, None, 0, None))
    table = jax.vmap(jax.vmap(each, (None, 0, None, None)), (0, None, None, None))

    def nearest(point):
        costs = table(jnp.asarray(places), jnp.asarray(places), signs, point)
        rows, columns = optax.assignment.hungarian_algorithm(jnp.min(costs, axis=2))
        order = jnp.zeros(len(places), int).at[rows].set(columns)
        best = jnp.argmin(costs, axis=2)[jnp.arange(len(places)), order]
        element: Any = order
        if parameters.signed:
            element = SignedPermutation(signs[best], order)
        return parameters.group.act(element, point)

    return jax.lax.map(nearest, draws)


def label_places(parameters: Parameters) -> Int[np.ndarray, "label width"]:
    """Return where each label's own coordinates are in a flat point.

    Of a matrix with labels along both axes, its diagonal.
    """
    found, start = [], 0
    for shape, axes in zip(parameters.free_shapes, parameters.axes, strict=True):
        places = start + np.arange(math.prod(shape)).reshape(shape)
        start += places.size
        if len(axes) == 1:
            places = np.moveaxis(places, axes[0], 0)
        elif axes:
            places = np.moveaxis(
                np.diagonal(places, axis1=axes[0], axis2=axes[1]), -1, 0
            )
        if axes:
            found.append(places.reshape(parameters.num_labels, -1))
    return np.concatenate(found, axis=1)
