"""Each score of the referee, with its floor."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from equistein.metrics._distances import total_variation, wasserstein_1d
from equistein.metrics._geometric_wasserstein import geometric_wasserstein
from equistein.metrics._measured_clouds import MeasuredClouds
from equistein.metrics._mode_weights import proportions
from equistein.metrics._particle_density import AbstractParticleDensity
from equistein.metrics._scores import Score

_GEOMETRIC_DRAWS = 5  # each takes all pairs of clouds


def all_scores(
    target: AbstractParticleDensity,
    ours: MeasuredClouds,
    effective_size: float,
    first: MeasuredClouds,
    second: MeasuredClouds,
    num_draws: int,
    num_geometric: int,
) -> dict[str, Score]:
    """Return every score with its floor.

    Args:
        target: The system.
        ours: The samples.
        effective_size: How many they count for in a standard error.
        first: Exact samples to compare with.
        second: Exact samples to draw floors from, at least twice as many as ours.
        num_draws: The draws of each floor.
        num_geometric: The clouds that the distance of clouds looks at.
    """
    generator = np.random.default_rng(0)
    draws = _drawn(generator, second, len(ours.points), num_draws)

    def error(values: Float[Array, " n"]) -> float:
        return float(np.std(np.asarray(values, float), ddof=1)) / effective_size**0.5

    scores = {
        "energy_w2": _score(
            lambda one: energy_w2(one.energies, first.energies), ours, draws
        ),
        "geometric_w2": _geometric(
            target, generator, ours, first, draws, num_geometric
        ),
        "distance_tv": _score(
            lambda one: _distance_tv(
                one.distances, first.distances, target.distance_limits
            ),
            ours,
            draws,
        ),
        "mean_energy": _score(
            lambda one: mean(one.energies), ours, draws,
            is_distance=False, error=error(ours.energies),
        ),
        "virial": _score(
            lambda one: mean(one.virials), ours, draws, is_distance=False,
            exact=float(target.degrees_of_freedom), error=error(ours.virials),
        ),
    }  # fmt: skip
    return scores | _state_scores(target, effective_size, ours, draws)


class _Draws(NamedTuple):
    """Sets of exact samples.

    Attributes:
        parts: The sets.
        shared: By how much their spread is too small, as they share samples.
    """

    parts: Sequence[MeasuredClouds]
    shared: float


def _drawn(
    generator: np.random.Generator, pool: MeasuredClouds, num: int, num_draws: int
) -> _Draws:
    """Draw from a pool: blocks that share nothing, or else subsets."""
    size = len(pool.points)
    if size >= num_draws * num:
        order = generator.permutation(size)[: num_draws * num]
        rows = order.reshape(num_draws, num)
        return _Draws([pool.take(block) for block in rows], 1.0)
    rows = [generator.choice(size, num, replace=False) for _ in range(num_draws)]
    # As for a mean of draws without replacement from a finite population.
    return _Draws([pool.take(block) for block in rows], (1 - num / size) ** 0.5)


def _score(
    function: Callable[[MeasuredClouds], Any],
    ours: MeasuredClouds,
    draws: _Draws,
    **fields: Any,
) -> Score:
    floors = [float(function(draw)) for draw in draws.parts]
    return Score(
        value=float(function(ours)),
        floor=float(np.mean(floors)),
        spread=float(np.std(floors, ddof=1)) / draws.shared,
        num_draws=len(floors),
        num_samples=len(ours.points),
        **fields,
    )


@eqx.filter_jit
def energy_w2(these: Float[Array, " n"], those: Float[Array, " m"]):
    """Return the Wasserstein-2 distance of two sets of energies."""
    return wasserstein_1d(these, those, order=2)


@eqx.filter_jit
def _distance_tv(these, those, limits):
    return total_variation(these, those, limits)


def mean(values: Float[Array, " n"]) -> float:
    """Return a mean, in double precision."""
    return float(np.mean(np.asarray(values, float)))


def _geometric(
    target: AbstractParticleDensity,
    generator: np.random.Generator,
    ours: MeasuredClouds,
    first: MeasuredClouds,
    draws: _Draws,
    num_geometric: int,
) -> Score:
    """Return the distance of clouds, of some of them."""
    few = min(num_geometric, len(ours.points), len(first.points))
    chosen = generator.choice(len(ours.points), few, replace=False)
    others = first.points[:few]
    distance = geometric_wasserstein(ours.points[chosen], others, target.group)
    if distance.is_exact:
        note = f"exact, of {few} clouds against {few}"
    else:
        note = f"an upper bound, of {few} clouds against {few}"
    floors = [
        geometric_wasserstein(draw.points[:few], others, target.group).value
        for draw in draws.parts[:_GEOMETRIC_DRAWS]
    ]
    return Score(
        value=distance.value, floor=float(np.mean(floors)),
        spread=float(np.std(floors, ddof=1)), num_draws=len(floors), num_samples=few,
        note=note,
    )  # fmt: skip


def _state_scores(
    target: AbstractParticleDensity,
    effective_size: float,
    ours: MeasuredClouds,
    draws: _Draws,
) -> dict[str, Score]:
    """Return the fraction of each known state."""
    num = len(target.state_energies)
    if not num:
        return {}

    def shares(points) -> np.ndarray:
        return np.asarray(proportions(target.known_states(points), num), float)

    found = shares(ours.points)
    floors = np.stack([shares(draw.points) for draw in draws.parts])
    return {
        f"state_{state + 1}": Score(
            value=float(found[state]),
            floor=float(floors[:, state].mean()),
            spread=float(floors[:, state].std(ddof=1)) / draws.shared,
            num_draws=len(floors),
            num_samples=len(ours.points),
            is_distance=False,
            error=float((found[state] * (1 - found[state]) / effective_size) ** 0.5),
            note=f"fraction of the minimum at {energy:.4f}",
        )
        for state, energy in enumerate(target.state_energies)
    }
