"""Draws for reading: relabelled, as a figure, and for ArviZ."""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from equistein._check_arguments import check_arguments
from equistein._extras import require
from equistein.groups import SignedPermutation
from equistein.posteriors._parameters import Parameters
from equistein.posteriors._pilot import pooled
from equistein.posteriors._posterior_samples import charts, PosteriorSamples

_MOST_TRIED = 720  # elements: all of six labels
_MOST_PASSES = 50
_MOST_SORTED = 8  # numbers of a label, by which draws are sorted at first
_MOST_SHOWN = 3  # numbers of a label in a figure


@check_arguments
def relabel(samples: PosteriorSamples) -> PosteriorSamples:
    r"""Return the draws with their labels as near as possible to a reference r.

    $$x \mapsto g_* x, \qquad g_* = \arg\min_g \lVert (g x - r) / h \rVert$$

    with h the widths of relabelled draws, of each label: first those of all draws, then
    those of the pass before, until nothing changes. The reference is first the draw of
    highest log density, then the mean of the draws of the pass before. The passes also
    begin at the draws sorted by each of a label's numbers, up to eight, and the
    narrowest result is taken; labels end in the order of the means of their first
    number. Up to 720 elements are all tried; beyond, labels are assigned by the
    Hungarian algorithm, of a matrix with two such axes by its diagonal.

    For reading only: where components overlap, the result depends on the reference,
    and means of relabelled draws are not means of the posterior, unlike those of
    `samples.invariants()`.
    """
    parameters: Parameters = samples.posterior.parameters
    if not parameters.num_labels:
        return samples
    draws = samples.points.reshape(-1, parameters.dim)
    best = draws[jnp.argmax(samples.log_density.ravel())]
    point = parameters.group.canonicalize(best)
    order = parameters.group.order
    small = order is not None and order <= _MOST_TRIED
    nearest = _nearest_of_all if small else _nearest_by_assignment
    center = pooled(parameters, jnp.mean(draws, axis=0), is_center=True)
    gaps = draws - center[None]
    squares = pooled(parameters, jnp.mean(gaps**2, axis=0))
    width = jnp.sqrt(jnp.where(squares > 0, squares, 1))
    starts = [nearest(parameters, point, width, draws)]
    places = _label_places(parameters)
    if not parameters.signed:
        for column in places.T[:_MOST_SORTED]:
            orders = jnp.argsort(draws[:, column], axis=1)
            starts.append(jax.vmap(parameters.group.act)(orders, draws))
    found = [_settled(parameters, start, nearest) for start in starts]
    _, draws = min(found, key=lambda pair: pair[0])
    if len(starts) > 1:  # in the order of the means of their first number
        firsts = jnp.argsort(jnp.mean(draws, axis=0)[places[:, 0]])
        draws = jax.vmap(parameters.group.act, (None, 0))(firsts, draws)
    points = draws.reshape(samples.points.shape)
    return dataclasses.replace(samples, points=points, relabelled=True)


def _settled(
    parameters: Parameters,
    draws: Float[Array, "n dim"],
    nearest: Callable[..., Float[Array, "n dim"]],
) -> tuple[float, Float[Array, "n dim"]]:
    """Relabel draws by their own mean and widths until nothing changes."""
    # Also returns the sum of the logarithms of the widths, which a good labelling makes
    # small.
    point, volume = draws[0], 0.0
    for _ in range(_MOST_PASSES):
        gaps = jax.vmap(lambda draw: _gaps(parameters, draw, point))(draws)  # noqa: B023
        middle = jnp.mean(gaps, axis=0)
        square = jnp.mean((gaps - middle[None]) ** 2, axis=0)
        width = jnp.sqrt(jnp.where(square > 0, square, 1))
        volume = float(jnp.sum(jnp.log(width)))
        point = point + middle
        new = nearest(parameters, point, width, draws)
        if bool(jnp.all(new == draws)):
            break
        draws = new
    return volume, draws


def _gaps(parameters: Parameters, x: Any, y: Any, where: Any = slice(None)) -> Array:
    """Return x - y in some coordinates, the shorter way around on circles."""
    periods = np.asarray(parameters.periods)[where]
    wraps = np.isfinite(periods)
    periods = jnp.asarray(np.where(wraps, periods, 1), jnp.asarray(x).dtype)
    gap = x - y
    return jnp.where(wraps, gap - periods * jnp.round(gap / periods), gap)


@eqx.filter_jit
def _nearest_of_all(parameters, reference, width, draws) -> Float[Array, "n dim"]:
    """Return draws moved near to a reference, of all elements by the best one."""
    elements = parameters.group.elements()
    squared = lambda x: jnp.sum((_gaps(parameters, x, reference) / width) ** 2)

    def nearest(point):
        orbit = jax.vmap(parameters.group.act, (0, None))(elements, point)
        return orbit[jnp.argmin(jax.vmap(squared)(orbit))]

    return jax.lax.map(nearest, draws)


@eqx.filter_jit
def _nearest_by_assignment(parameters, reference, width, draws):
    """Return the same by the Hungarian algorithm."""
    places = _label_places(parameters)
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


def _label_places(parameters: Parameters) -> Int[np.ndarray, "label width"]:
    """Return the indices of each label's coordinates, of a matrix its diagonal."""
    columns = []
    for places, axes in zip(parameters.places.values(), parameters.axes, strict=True):
        if axes:
            places = np.moveaxis(_labels_last(places, axes), -1, 0)
            columns.append(places.reshape(parameters.num_labels, -1))
    return np.concatenate(columns, axis=1)


def _labels_last(array: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Return an array with the axis of its labels last; of two such, the diagonal."""
    if len(axes) == 2:
        return np.diagonal(array, 0, *axes)
    return np.moveaxis(array, axes[0], -1)


@check_arguments
def plot(samples: PosteriorSamples) -> Any:
    """Return a figure of matplotlib: marginals, relabelled and label-invariant.

    A row for each number that every label has, the first three of a parameter; beside
    it the order statistics of the same number. Below, parameters without labels.
    """
    from equistein.plotting import marginals  # loads matplotlib

    parameters, raw = samples.posterior.parameters, samples.named
    readable = relabel(samples).named
    left, right, rest = {}, {}, {}
    for i, name in enumerate(parameters.names):
        axes, period = parameters.axes[i], parameters.constraints[i].period
        shown = charts(name, readable[name], period)
        for (title, ours), (_, theirs) in zip(
            shown, charts(name, raw[name], period), strict=True
        ):
            if not axes:
                draws = np.asarray(theirs)
                rest[title] = draws.reshape(draws.shape[0] * draws.shape[1], -1)
                continue
            theirs = abs(theirs) if parameters.signed else theirs
            order = np.sort(_by_label(theirs, axes), axis=-1)
            left |= _numbered(title, _by_label(ours, axes))
            right |= _numbered(f"{title}, sorted", order)
    return marginals(left, right | rest)


def _by_label(array: Any, axes: tuple[int, ...]) -> np.ndarray:
    """Return the numbers of each label, (number, draw, label)."""
    array = _labels_last(np.asarray(array), tuple(axis + 2 for axis in axes))
    array = array.reshape(array.shape[0] * array.shape[1], -1, array.shape[-1])
    return np.moveaxis(array, 1, 0)


def _numbered(title: str, numbers: np.ndarray) -> dict[str, np.ndarray]:
    """Return the first few numbers by the title, counted where there are several."""
    if len(numbers) == 1:
        return {title: numbers[0]}
    return {f"{title} {j + 1}": x for j, x in enumerate(numbers[:_MOST_SHOWN])}


@check_arguments
def to_arviz(samples: PosteriorSamples) -> Any:
    """Return the draws for ArviZ: a `DataTree` with these groups.

    `posterior` has what does not depend on the labels, so that the R-hat and the ESS of
    `arviz_stats.summary` are meaningful; `sample_stats` the log density, as `lp`;
    `relabelled` the parameters with labels, relabelled, for reading.
    """
    arviz = require("arviz_base", "ArviZ", "bayes")
    readable = relabel(samples).named
    invariants = samples.invariants()
    lp = invariants.pop("log_density")
    groups = {"posterior": invariants, "sample_stats": {"lp": lp}}
    labelled = samples.posterior.parameters.exchangeable
    if labelled:
        groups["relabelled"] = {name: readable[name] for name in labelled}
    arrays = {
        group: {name: np.asarray(x) for name, x in values.items()}
        for group, values in groups.items()
    }
    evidence = {
        "log_evidence": samples.log_evidence,
        "log_evidence_error": samples.log_evidence_error,
        "evaluations": float(samples.evaluations),
    }
    return arviz.from_dict(arrays, attrs={"/": evidence})
