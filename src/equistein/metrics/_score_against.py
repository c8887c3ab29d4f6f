"""Samples of a particle system, compared with exact ones."""

import functools
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein._check_arguments import check_finite_arguments
from equistein._numbers import check_integers
from equistein._types import LogDensity, Particles
from equistein.metrics._distances import proportions, total_variation, wasserstein_1d
from equistein.metrics._particle_systems import (
    AbstractParticleDensity,
    geometric_wasserstein,
    pair_distances,
)
from equistein.metrics._scores import ReferenceQuality, Score, Scores, SPREADS

_LARGEST = 1e15  # squares of larger numbers overflow in single precision
_BATCH = 1_000  # clouds evaluated together
_CORRELATED = 2.0  # samples of one ladder are not quite independent
_POOL = 4  # times as many exact samples as samples, for the floors
_GEOMETRIC_DRAWS = 5  # each takes all pairs of clouds


@check_finite_arguments
def score_against(
    samples: Any,
    target: AbstractParticleDensity,
    *,
    reference: tuple[Any, Any] | None = None,
    num_draws: int = 20,
    num_geometric: int = 200,
) -> Scores:
    """Compare samples of a particle system with exact ones.

    Every score has its floor: the mean and spread that as many exact samples have. The
    scores are the Wasserstein-2 distances of the energies and, up to motions and
    permutations, of the clouds; the total variation of the pair distances in 200 bins;
    the mean energy; the virial, whose exact value is the number of degrees of freedom;
    and the fraction of each state, where states are few.

    The exact samples are two independent runs of the target's own parallel tempering,
    made once and cached: the first is compared with, floors are drawn from the second,
    and their distance is the error of the reference itself.

    Args:
        samples: The samples: `(n, particle, dim)`, or rows of coordinates.
        target: The density that they are compared with.
        reference: Two independent sets of exact samples to use instead, the second at
            least twice as many as the samples.
        num_draws: The draws of each floor.
        num_geometric: The clouds in the distance of clouds.

    Returns:
        The scores. Their `warnings` are also raised as `UserWarning`.

    Raises:
        ValueError: If these cannot be samples of the target, or there are too few
            exact ones.
    """
    counts = {"num_draws": num_draws, "num_geometric": num_geometric}
    check_integers("`score_against`", least=2, **counts)
    given = _measure(samples, target)
    ours, size, num = given.clouds, given.effective_size, len(given.clouds.points)
    origin = "two sets that were given"
    if reference is None:
        origin = "two runs of parallel tempering, made with seeds 1000 and 1001"
        least = target.num_reference
        # In multiples of one size, so that the cache is used.
        pool = target.reference(-(-_POOL * num // least) * least, 1)
        reference = target.reference(least, 0), pool
    first, second = (_measure(part, target).clouds for part in reference)
    if len(second.points) < 2 * num:
        raise ValueError(
            "`score_against` needs a second `reference` of at least twice as many as "
            f"the {num} samples, but it has {len(second.points)}: give more, or score "
            "fewer samples."
        )
    reasons = _virial_warning("The samples", ours, target, size)
    reasons += _reference_warnings(first, second, target)
    for reason in reasons:
        warnings.warn(reason, stacklevel=3)
    draw = second.take(np.arange(num))
    shown = {"samples": ours, "reference": first, "exact samples": draw}
    return Scores(
        target=target.name,
        num_samples=num,
        num_distinct=len(given.counts),
        effective_size=size,
        scores=_all_scores(target, ours, size, first, second, **counts),
        reference=ReferenceQuality(
            len(first.points),
            *_moments(first.virials),
            virial_exact=float(target.degrees_of_freedom),
            energy_w2=float(_energy_w2(first.energies, second.energies)),
            origin=origin,
        ),
        notes=given.notes,
        warnings=tuple(reasons),
        energies={name: np.asarray(one.energies) for name, one in shown.items()},
        distances={name: np.asarray(one.distances) for name, one in shown.items()},
    )


class _Clouds(NamedTuple):
    """Centered clouds, with the energy, the virial and the pair distances of each."""

    points: Particles
    energies: Float[Array, " n"]
    virials: Float[Array, " n"]
    distances: Float[Array, "n pair"]

    def take(self, rows: np.ndarray) -> "_Clouds":
        return _Clouds(*(part[rows] for part in self))


class _Measured(NamedTuple):
    clouds: _Clouds
    counts: np.ndarray  # how often each distinct row occurs
    notes: tuple[str, ...]

    @property
    def effective_size(self) -> float:
        counts = self.counts.astype(float)
        return float(counts.sum() ** 2 / np.sum(counts**2))


def _measure(samples: Any, target: AbstractParticleDensity) -> _Measured:
    """Center samples and measure them; raise if they cannot be samples of a target."""
    num, dim = target.num_particles, target.dim
    needs = (
        f"`score_against` needs `samples` of {target.name}, floating-point numbers of "
        f"shape (n, {num * dim}) or (n, {num}, {dim}), "
    )
    values = np.asarray(samples)
    if not jnp.issubdtype(values.dtype, jnp.floating):
        raise ValueError(f"{needs}but they are of type {values.dtype}.")
    if values.shape[1:] not in ((num * dim,), (num, dim)) or len(values) < 2:
        raise ValueError(
            f"{needs}n at least 2, but got shape {values.shape}. Samples of another "
            "system need another target."
        )
    rows = values.astype(np.float64).reshape(len(values), -1)
    bad = ~np.all(np.abs(rows) <= _LARGEST, axis=1)
    if bad.any():
        raise ValueError(
            f"{needs}finite and at most 1e15, but {bad.sum()} of {len(rows)} are not, "
            f"the first at index {bad.argmax()}. Leave them out, and report how many."
        )
    if np.array_equal(rows, np.round(rows)):
        raise ValueError(f"{needs}but all are whole numbers.")
    notes = []
    if values.ndim == 2:
        notes.append(f"Rows were cut into {num} particles of {dim} coordinates.")
    clouds = rows.reshape(-1, num, dim)
    centers = clouds.mean(axis=1, keepdims=True)
    if np.max(np.abs(centers)) > 1e-4 * np.max(np.abs(clouds)):
        far = np.max(np.linalg.norm(centers, axis=-1))
        notes.append(
            f"Centers of mass, up to {far:.3g} from the origin, were moved there."
        )
    points = jnp.asarray(clouds - centers, float)
    energies, virials = _energies_and_virials(target.log_density, points)
    measured = _Clouds(points, energies, virials, pair_distances(points))
    counts = np.unique(rows, axis=0, return_counts=True)[1]
    return _Measured(measured, counts, tuple(notes))


@eqx.filter_jit
def _energies_and_virials(log_density: LogDensity, points: Particles):
    def one(x):
        value, score = jax.value_and_grad(log_density)(x)
        return -value, -jnp.sum(x * score)

    return jax.lax.map(one, points, batch_size=_BATCH)


_energy_w2 = eqx.filter_jit(functools.partial(wasserstein_1d, order=2))
_distance_tv = eqx.filter_jit(total_variation)


def _moments(
    values: Float[Array, " n"], size: float | None = None
) -> tuple[float, float]:
    """Return the mean and its standard error, of `size` independent values."""
    doubles = np.asarray(values, float)
    error = doubles.std(ddof=1) / (size or len(doubles)) ** 0.5
    return float(doubles.mean()), float(error)


def _virial_warning(
    whose: str,
    clouds: _Clouds,
    target: AbstractParticleDensity,
    size: float | None = None,
    consequence: str = "",
) -> list[str]:
    virial, error = _moments(clouds.virials, size)
    gap = abs(virial - target.degrees_of_freedom)
    if gap <= SPREADS * error:
        return []
    return [
        f"{whose} fail the virial theorem: {virial:.4g} +- {error:.2g} instead of "
        f"{target.degrees_of_freedom:g}, {gap / error:.3g} standard errors off"
        f"{consequence}."
    ]


def _reference_warnings(
    first: _Clouds, second: _Clouds, target: AbstractParticleDensity
) -> list[str]:
    useless = "; no score means much"
    reasons = _virial_warning(
        "The reference samples", first, target, consequence=useless
    )
    (one, error), (other, other_error) = map(
        _moments, (first.energies, second.energies)
    )
    if abs(one - other) > _CORRELATED * SPREADS * np.hypot(error, other_error):
        reasons.append(
            f"The two runs of the reference differ: their mean energies are {one:.4g} "
            f"and {other:.4g}{useless}."
        )
    return reasons


def _all_scores(
    target: AbstractParticleDensity,
    ours: _Clouds,
    size: float,
    first: _Clouds,
    second: _Clouds,
    num_draws: int,
    num_geometric: int,
) -> dict[str, Score]:
    """Return every score with its floor, against `first`, drawn from `second`."""
    generator = np.random.default_rng(0)
    draws, shrink = _draw(generator, second, len(ours.points), num_draws)

    def score(function, **fields) -> Score:
        floors = [function(draw) for draw in draws]
        return _score(function(ours), floors, len(ours.points), shrink, **fields)

    def mean_of(name, **fields) -> Score:
        fields["error"] = _moments(getattr(ours, name), size)[1]
        mean = lambda one: _moments(getattr(one, name))[0]
        return score(mean, is_distance=False, **fields)

    scores = {
        "energy_w2": score(lambda one: _energy_w2(one.energies, first.energies)),
        "geometric_w2": _geometric(
            target, generator, ours, first, draws, num_geometric
        ),
        "distance_tv": score(
            lambda one: _distance_tv(
                one.distances, first.distances, target.distance_limits
            )
        ),
        "mean_energy": mean_of("energies"),
        "virial": mean_of("virials", exact=float(target.degrees_of_freedom)),
    }
    if not target.state_energies:
        return scores
    num = len(target.state_energies)
    fractions, *floors = (
        np.asarray(proportions(target.known_states(part.points), num), float)
        for part in (ours, *draws)
    )
    for state, energy in enumerate(target.state_energies):
        fraction = fractions[state]
        scores[f"state_{state + 1}"] = _score(
            fraction, [floor[state] for floor in floors], len(ours.points), shrink,
            is_distance=False, error=float((fraction * (1 - fraction) / size) ** 0.5),
            note=f"fraction of the minimum at {energy:.4f}",
        )  # fmt: skip
    return scores


def _draw(
    generator: np.random.Generator, pool: _Clouds, num: int, num_draws: int
) -> tuple[list[_Clouds], float]:
    """Draw disjoint sets from a pool, or else subsets that overlap.

    Also return by how much the spread of these sets is too small, as they overlap.
    """
    size = len(pool.points)
    if size >= num_draws * num:
        order = generator.permutation(size)[: num_draws * num]
        return [pool.take(rows) for rows in order.reshape(num_draws, num)], 1.0
    rows = [generator.choice(size, num, replace=False) for _ in range(num_draws)]
    # As for a mean of draws without replacement from a finite population.
    return [pool.take(chosen) for chosen in rows], (1 - num / size) ** 0.5


def _score(
    value: Any, floors: Sequence[Any], num: int, shrink: float = 1.0, **fields: Any
) -> Score:
    numbers = [float(floor) for floor in floors]
    return Score(
        value=float(value),
        floor=float(np.mean(numbers)),
        spread=float(np.std(numbers, ddof=1)) / shrink,
        num_draws=len(numbers),
        num_samples=num,
        **fields,
    )


def _geometric(
    target: AbstractParticleDensity,
    generator: np.random.Generator,
    ours: _Clouds,
    first: _Clouds,
    draws: list[_Clouds],
    most: int,
) -> Score:
    few = min(most, len(ours.points), len(first.points))
    chosen = generator.choice(len(ours.points), few, replace=False)
    others = first.points[:few]
    distance = geometric_wasserstein(ours.points[chosen], others, target.group)
    floors = [
        geometric_wasserstein(draw.points[:few], others, target.group).value
        for draw in draws[:_GEOMETRIC_DRAWS]
    ]
    kind = "exact" if distance.is_exact else "an upper bound"
    note = f"{kind}, of {few} clouds against {few}"
    return _score(distance.value, floors, few, note=note)
