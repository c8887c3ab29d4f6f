"""Samples of a particle system, compared with exact ones."""

import warnings
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from equistein._arrays import on_device
from equistein._check_arguments import check_finite_arguments
from equistein._numbers import check_integers
from equistein.metrics._distances import total_variation, wasserstein_1d
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
    and their distance is the error of the reference itself. The `warnings` of the
    scores are also issued.

    Args:
        samples: The samples: `(n, particle, dim)`, or rows of coordinates.
        target: The density that they are compared with.
        reference: Two independent sets of exact samples to use instead, the second at
            least twice as many as the samples.
        num_draws: The draws of each floor.
        num_geometric: The clouds in the distance of clouds.
    """
    counts = {"num_draws": num_draws, "num_geometric": num_geometric}
    check_integers("`score_against`", least=2, **counts)
    points, counts_of_rows, notes = _centered(samples, target)
    num = len(points)
    size = float(num**2 / np.sum(counts_of_rows.astype(float) ** 2))
    origin = "two sets that were given"
    if reference is None:
        origin = "two runs of parallel tempering, made with seeds 1000 and 1001"
        least = target.num_reference
        # In multiples of one size, so that the cache is used.
        pool = target.reference(-(-_POOL * num // least) * least, 1)
        reference = target.reference(least, 0), pool
    parts = points, *(_centered(part, target)[0] for part in reference)
    if len(parts[2]) < 2 * num:
        raise ValueError(
            "`score_against` needs a second `reference` of at least twice as many as "
            f"the {num} samples, but it has {len(parts[2])}: give more, or score "
            "fewer samples."
        )
    generator = np.random.default_rng(0)
    rows, shrink = _draw(generator, len(parts[2]), num, num_draws)
    clouds, distances, energy_w2 = jax.tree.map(
        np.asarray, _compare(target, parts, rows, target.distance_limits)
    )
    ours, first, second = clouds
    useless = "; no score means much"
    reasons = _virial_warning("The samples", ours, target, size)
    reasons += _virial_warning("The reference samples", first, target, end=useless)
    one, error = _moments(first.energies)
    other, other_error = _moments(second.energies)
    if abs(one - other) > _CORRELATED * SPREADS * np.hypot(error, other_error):
        reasons.append(
            f"The two runs of the reference differ: their mean energies are {one:.4g} "
            f"and {other:.4g}{useless}."
        )
    for reason in reasons:
        warnings.warn(reason, stacklevel=3)
    draw = _Clouds(*(part[:num] for part in second))
    shown = {"samples": ours, "reference": first, "exact samples": draw}
    return Scores(
        target=target.name,
        num_samples=num,
        num_distinct=len(counts_of_rows),
        effective_size=size,
        scores=_all_scores(
            target, clouds, size, rows, shrink, distances, generator, num_geometric
        ),
        reference=ReferenceQuality(
            len(first.points),
            *_moments(first.virials),
            virial_exact=float(target.degrees_of_freedom),
            energy_w2=float(energy_w2),
            origin=origin,
        ),
        notes=notes,
        warnings=tuple(reasons),
        energies={name: one.energies for name, one in shown.items()},
        distances={name: one.distances for name, one in shown.items()},
    )


class _Clouds(NamedTuple):
    """Centered clouds, with the energy, the virial and the pair distances of each."""

    points: Any
    energies: Any
    virials: Any
    distances: Any


def _centered(
    samples: Any, target: AbstractParticleDensity
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Center samples, or raise; also count each distinct one, and say what was done."""
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
    counts = np.unique(rows, axis=0, return_counts=True)[1]
    return np.asarray(clouds - centers, float), counts, tuple(notes)


@eqx.filter_jit
def _compare(target, parts, rows, limits):
    """Return the clouds, the distances of samples and draws, and of the references."""
    # One program: of the samples, the first reference, and the second, whose rows are
    # draws. The distances are those of energies and of pair distances to the first.

    def measure(x):
        value, score = jax.value_and_grad(target.log_density)(x)
        return -value, -jnp.sum(x * score)

    points = jnp.concatenate(parts)
    each = (points, *jax.lax.map(measure, points, batch_size=_BATCH))
    each = (*each, pair_distances(points))
    ends = np.cumsum([len(part) for part in parts])[:-1]
    split = [jnp.split(part, ends) for part in each]
    ours, first, second = (_Clouds(*part) for part in zip(*split, strict=True))

    def distances(energies, pairs):
        return (
            wasserstein_1d(energies, first.energies, order=2),
            total_variation(pairs, first.distances, limits),
        )

    of_draw = lambda some: distances(second.energies[some], second.distances[some])
    floors = jax.lax.map(of_draw, rows)
    values = distances(ours.energies, ours.distances)
    between = wasserstein_1d(first.energies, second.energies, order=2)
    return (ours, first, second), (values, floors), between


def _moments(values: np.ndarray, size: float | None = None) -> tuple[float, float]:
    """Return the mean and its standard error, of `size` independent values."""
    doubles = np.asarray(values, float)
    error = doubles.std(ddof=1) / (size or len(doubles)) ** 0.5
    return float(doubles.mean()), float(error)


def _virial_warning(
    whose: str, clouds: _Clouds, target: Any, size: float | None = None, end: str = ""
) -> list[str]:
    virial, error = _moments(clouds.virials, size)
    gap = abs(virial - target.degrees_of_freedom)
    if gap <= SPREADS * error:
        return []
    return [
        f"{whose} fail the virial theorem: {virial:.4g} +- {error:.2g} instead of "
        f"{target.degrees_of_freedom:g}, {gap / error:.3g} standard errors off{end}."
    ]


def _all_scores(
    target, clouds, size, rows, shrink, distances, generator, num_geometric
) -> dict[str, Score]:
    """Return every score with its floor, against the first reference."""
    (ours, first, second), num = clouds, rows.shape[1]
    (energy_w2, distance_tv), (energy_floors, distance_floors) = distances
    draws = second.points[rows]

    def mean_of(name, **fields) -> Score:
        mean, error = _moments(getattr(ours, name), size)
        floors = np.asarray(getattr(second, name)[rows], np.float64).mean(axis=1)
        fields |= {"error": error, "is_distance": False}
        return _score(mean, floors, num, shrink, **fields)

    few = min(num_geometric, len(ours.points), len(first.points))
    chosen = generator.choice(len(ours.points), few, replace=False)
    others = on_device(first.points[:few])
    to_others = lambda x: geometric_wasserstein(on_device(x), others, target.group)
    apart = to_others(ours.points[chosen])
    far = [to_others(draw[:few]).value for draw in draws[:_GEOMETRIC_DRAWS]]
    kind = "exact" if apart.is_exact else "an upper bound"
    note = f"{kind}, of {few} clouds against {few}"
    scores = {
        "energy_w2": _score(energy_w2, energy_floors, num, shrink),
        "geometric_w2": _score(apart.value, far, few, note=note),
        "distance_tv": _score(distance_tv, distance_floors, num, shrink),
        "mean_energy": mean_of("energies"),
        "virial": mean_of("virials", exact=float(target.degrees_of_freedom)),
    }
    if not target.state_energies:
        return scores
    every = np.concatenate([ours.points, *draws])
    states = np.asarray(target.known_states(on_device(every)))
    fractions, *floors = (
        np.bincount(some, minlength=len(target.state_energies)) / num
        for some in states.reshape(-1, num)
    )
    for state, energy in enumerate(target.state_energies):
        fraction = fractions[state]
        scores[f"state_{state + 1}"] = _score(
            fraction, [floor[state] for floor in floors], num, shrink,
            is_distance=False, error=float((fraction * (1 - fraction) / size) ** 0.5),
            note=f"fraction of the minimum at {energy:.4f}",
        )  # fmt: skip
    return scores


def _draw(
    generator: np.random.Generator, size: int, num: int, num_draws: int
) -> tuple[np.ndarray, float]:
    """Return the rows of disjoint sets from a pool, or else of subsets that overlap."""
    # Also return by how much the spread of these sets is too small, as they overlap.
    if size >= num_draws * num:
        order = generator.permutation(size)[: num_draws * num]
        return order.reshape(num_draws, num), 1.0
    rows = [generator.choice(size, num, replace=False) for _ in range(num_draws)]
    # As for a mean of draws without replacement from a finite population.
    return np.array(rows), (1 - num / size) ** 0.5


def _score(
    value: Any, floors: Any, num: int, shrink: float = 1.0, **fields: Any
) -> Score:
    numbers = np.asarray(floors, np.float64)
    floor, spread = float(numbers.mean()), float(numbers.std(ddof=1)) / shrink
    return Score(float(value), floor, spread, len(numbers), num, **fields)
