"""Whether chains agree, and whether two runs sample the same density."""

from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float
from scipy.spatial.distance import cdist

from equistein._check_arguments import check_arguments, check_finite_arguments
from equistein._extras import require
from equistein.groups import AbstractGroup
from equistein.samplers import Samples, warn_of_samples

_MOST = 500  # particles of each run
_PERMUTATIONS = 999
_UNLIKELY = 0.01
_ERRORS = 3.0
_FEWEST = 4  # draws of a chain, two of each half


class Coverage(NamedTuple):
    """How two runs differ; `log_z_gap` is in standard errors, NaN if not estimated."""

    energy_distance: float
    p_value: float
    log_z_gap: float
    agree: bool


@check_arguments
def check_coverage(
    samples: Any, other_samples: Any, group: AbstractGroup | None = None
) -> Coverage:
    r"""Compare two runs from different starts: both should end in the same modes.

    A permutation test of the energy distance between the final particles, of which each
    is taken as independent of the others, as of chains; up to 500 of each run. If the
    runs estimate log Z, they also differ where the estimates are more than three
    standard errors apart. Runs that differ give a `SamplingWarning`. Runs that agree
    may both have missed a mode.

    Both are results of `es.run` or `Posterior.run`, with different keys. Modes that
    elements of `group` map to each other count as one; a posterior knows its group.

    References:
        Székely and Rizzo (2013), Energy statistics.
    """
    runs = [getattr(given, "samples", given) for given in (samples, other_samples)]
    if any(not isinstance(r, Samples) or np.ndim(r.num_steps) for r in runs):
        raise ValueError(
            "`check_coverage` needs two results of `es.run` or `Posterior.run`; of "
            "several runs give one, as `samples[0]`."
        )
    first, second = (_points(given, group) for given in (samples, other_samples))
    if first.shape[1:] != second.shape[1:] or min(len(first), len(second)) < 5:
        raise ValueError(  # of fewer no p-value is below .01
            "`check_coverage` needs five or more particles of one shape in both runs, "
            f"but got {first.shape} and {second.shape}."
        )
    rng, num = np.random.default_rng(0), min(len(first), len(second), _MOST)
    both = np.concatenate([rng.permutation(x)[:num] for x in (first, second)])
    spread = both.std(axis=0)
    scaled = both / np.where(spread > 0, spread, 1)
    distances = cdist(scaled, scaled)
    signs = np.repeat([1.0, -1.0], num)
    mixed = rng.permuted(np.tile(signs, (_PERMUTATIONS, 1)), axis=1)
    of = lambda rows: -np.einsum("ij,ij->i", rows @ distances, rows) / num**2
    distance, others = of(signs[None])[0], of(mixed)
    p_value = (1 + np.sum(others >= distance)) / (1 + _PERMUTATIONS)
    of_both = lambda name: [float(run.summary.get(name, np.nan)) for run in runs]
    gap = np.ptp(of_both("log_z")) / max(np.linalg.norm(of_both("log_z_error")), 1e-30)
    texts = []
    if p_value < _UNLIKELY:
        texts.append(
            f"their particles have an energy distance of {distance:.3g} standard "
            f"deviations, which one distribution gives with probability {p_value:.2g}"
        )
    if gap > _ERRORS:
        texts.append(f"their log Z are {gap:.1f} standard errors apart")
    if texts:
        warn_of_samples(
            f"two runs differ: {' and '.join(texts)}. One has missed modes of the "
            "other: start wider, take more steps or temperatures."
        )
    return Coverage(float(distance), float(p_value), gap, not texts)


def _points(samples: Any, group: AbstractGroup | None) -> np.ndarray:
    if not isinstance(samples, Samples):  # last draws, moved by the group at random
        return np.asarray(samples.points[:, -1], float)
    points: Any = samples.particles
    if not isinstance(points, jax.Array | np.ndarray):  # trees
        points = samples.state.particles
    if group is not None:
        points = jax.jit(jax.vmap(group.canonicalize))(points)
    return np.asarray(points, float).reshape(len(points), -1)


@check_finite_arguments
def summarize_chains(
    values: Float[Array | np.ndarray, "chain draw *value"],
) -> dict[str, Any]:
    """Return means of numbers of chains with their errors, and whether chains agree.

    By ArviZ (extra `bayes`). Not defined for particles that interact.

    Returns:
        For each number its `mean`; the Monte Carlo standard `error`; the spread `sd`;
        effective sample sizes `bulk`, which may be more than draws, and `tail`; the
        rank-normalized split `r_hat`. Of constant numbers and of chains of fewer than
        four draws they are NaN, and the `reason` is not empty.

    References:
        Vehtari et al. (2021), Rank-normalization, folding, and localization.
    """
    arviz = require("arviz_stats.base.array", "ArviZ", "bayes").array_stats
    values = np.moveaxis(np.asarray(values, float), (0, 1), (-2, -1))
    constant = np.all(values == values[..., :1, :1], axis=(-2, -1))
    num, reason = values.shape[-1], "constant numbers" if np.any(constant) else ""
    if num < _FEWEST:
        reason = f"chains of {num} draws, of which {_FEWEST} are needed"
    with np.errstate(invalid="ignore", divide="ignore"):
        found = {
            "error": arviz.mcse(values),
            "bulk": arviz.ess(values, method="bulk"),
            "tail": arviz.ess(values, method="tail", prob=(0.05, 0.95)),
            "r_hat": arviz.rhat(values),
        }
    constant |= num < _FEWEST
    found = {name: np.where(constant, np.nan, x) for name, x in found.items()}
    mean, sd = np.mean(values, axis=(-2, -1)), np.std(values, axis=(-2, -1))
    return {"mean": mean, "sd": sd, **found, "reason": reason}
