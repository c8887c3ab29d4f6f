"""Which parameters are exchangeable, found by trial."""

import itertools
import math
from collections.abc import Iterator

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from equistein._types import LogDensity
from equistein.posteriors._parameters import Parameters

_MOST_SETS = 512  # tried for a number of labels
_ROUNDING = 100.0  # in units of the last place


def find_labels(
    log_density: LogDensity, parameters: Parameters, points: Float[Array, "n dim"]
) -> dict[str, tuple[int, ...]]:
    """Return the axes along which labels may be swapped, of the most parameters.

    For each length of an axis, all sets of axes of this length are tried, the largest
    first, 512 of them at most: the density must stay as it is at all points when the
    first two labels are swapped, and when all move on by one, which makes all swaps.

    Args:
        log_density: The log density of flat points.
        parameters: What the flat points are, without labels.
        points: Where to try, such as draws of the prior.

    Returns:
        The axes of the labels by name; none where there is no such symmetry.
    """
    best: list[tuple[str, int]] = []
    for num, axes in sorted(_axes_by_length(parameters).items()):
        sets = list(itertools.islice(_sets(axes), _MOST_SETS))
        moves = [
            np.stack([_moved(parameters, some, order) for some in sets])
            for order in _generators(num)
        ]
        holds = _holds(log_density, points, jnp.asarray(np.stack(moves, axis=1)))
        found = [
            some for some, good in zip(sets, np.asarray(holds), strict=True) if good
        ]
        if found and len(found[0]) >= len(best):
            best = found[0]
    named: dict[str, tuple[int, ...]] = {}
    for name, axis in best:
        named[name] = (*named.get(name, ()), axis)
    return named


def _axes_by_length(parameters: Parameters) -> dict[int, list[tuple[str, int]]]:
    """Return the axes of parameters by their length, two or more."""
    found: dict[int, list[tuple[str, int]]] = {}
    shapes = zip(
        parameters.names, parameters.shapes, parameters.free_shapes, strict=True
    )
    for name, shape, free_shape in shapes:
        for axis, num in enumerate(free_shape):
            if num >= 2 and shape[axis : axis + 1] == (num,):
                found.setdefault(num, []).append((name, axis))
    return found


def _sets(axes: list[tuple[str, int]]) -> Iterator[list[tuple[str, int]]]:
    for size in range(len(axes), 0, -1):
        yield from map(list, itertools.combinations(axes, size))


def _generators(num: int) -> list[np.ndarray]:
    """Return a swap of two labels and the move by one: they make all orders."""
    swap = np.arange(num)
    swap[:2] = 1, 0
    return [swap, np.roll(np.arange(num), 1)]


def _moved(
    parameters: Parameters, axes: list[tuple[str, int]], order: np.ndarray
) -> Int[np.ndarray, " dim"]:
    """Return where each coordinate comes from when labels along some axes move."""
    places, start = [], 0
    for name, shape in zip(parameters.names, parameters.free_shapes, strict=True):
        part = start + np.arange(math.prod(shape)).reshape(shape)
        start += part.size
        for axis in [axis for owner, axis in axes if owner == name]:
            part = np.take(part, order, axis=axis)
        places.append(part.ravel())
    return np.concatenate(places)


@eqx.filter_jit
def _holds(
    log_density: LogDensity,
    points: Float[Array, "n dim"],
    moves: Int[Array, "set move dim"],
) -> Array:
    """Return for each set whether the density stays at all points, by all moves."""
    before = jax.lax.map(log_density, points)
    limit = _ROUNDING * jnp.finfo(before.dtype).eps * (1 + jnp.abs(before))

    def stays(move):
        after = jax.vmap(log_density)(points[:, move])
        return jnp.all(jnp.abs(after - before) <= limit)

    flat = jax.lax.map(stays, moves.reshape(-1, moves.shape[-1]))
    return jnp.all(flat.reshape(moves.shape[:2]), axis=1)
