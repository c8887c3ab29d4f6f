"""Short chains that find where a posterior is, and how wide."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein._types import Key, LogDensity
from equistein.features import Periodic
from equistein.groups import AbstractGroup
from equistein.kernels import Equivariant, PeriodicRBF, RBF
from equistein.posteriors._draws import log_densities
from equistein.posteriors._parameters import Parameters
from equistein.posteriors._pooling import pooled, without_signs
from equistein.posteriors._propriety import check_proper, runs_away
from equistein.posteriors._reference import WideReference
from equistein.posteriors._standardized import Coordinates, StandardizedDensity
from equistein.samplers import MALA, run, suppress_warnings

_ROUNDS = 5
_NUM_STEPS = 200  # a round
_WIDER = 1.5  # the reference than the posterior
_HIGH = 0.75  # quantile of the log density that chains are compared with
_SLACK, _SLACK_OF_COORDINATE = 20.0, 3.0  # of the log density
_LEAST, _MOST = 1e-10, 1e10  # widths
_SPREADS = (1.0, 0.1, 0.01, 0.0)  # of a start around the example


class Pilot(eqx.Module):
    """What short chains found of a posterior: what samplers need to be set up.

    Attributes:
        coordinates: Coordinates z with the posterior's center at the origin and, in
            each of its modes, about unit width. Swaps act on them as on flat points.
        log_density: The log density of z.
        start: Where the chains ended, as z.
        reference: A normalized density of z that is wider than the posterior and has
            its symmetry: the hot end of tempering and of sequential Monte Carlo.
        evaluations: The number of scores that all chains took.
        group: The symmetry.
        periodic: What wraps z; None where nothing comes again.
    """

    coordinates: Coordinates
    log_density: StandardizedDensity
    start: Float[Array, "chain dim"]
    reference: WideReference
    evaluations: int
    group: AbstractGroup
    periodic: Periodic | None

    def kernel(self, bandwidth: float) -> Equivariant:
        """Return the equivariant kernel on z, which wraps where z does."""
        return equivariant_kernel(bandwidth, self.group, self.periodic)


def equivariant_kernel(
    bandwidth: float, group: AbstractGroup, periodic: Periodic | None
) -> Equivariant:
    """Return the equivariant kernel of a group, on what wraps where something does."""
    if periodic is None:
        return Equivariant(RBF(bandwidth), group)
    return Equivariant(PeriodicRBF(bandwidth, periodic=periodic), group)


def fly(
    key: Key,
    log_density: LogDensity,
    parameters: Parameters,
    points: Float[Array, "chain dim"],
    check: bool = True,
) -> Pilot:
    """Run chains for some rounds, each in the units that the one before found.

    Args:
        key: The source of randomness.
        log_density: The log density of flat points.
        parameters: What flat points hold.
        points: The start.
        check: Whether to look if the density falls off far away.

    Raises:
        ValueError: If the chains run away, or the density does not fall off.
    """
    free = ~np.isfinite(parameters.periods)
    ones = jnp.ones_like(parameters.example)
    coordinates, spread = Coordinates(0 * ones, ones), ones
    for i in range(_ROUNDS):
        density = StandardizedDensity(log_density, coordinates)
        with suppress_warnings():  # where it ends is looked at below
            samples = run(
                jr.fold_in(key, i), MALA(0.1, num_adapt=_NUM_STEPS), density,
                coordinates.forward(points), num_steps=_NUM_STEPS, record_every=4,
                keep=len(points), check=i == 0,
            )  # fmt: skip
        values = log_densities(density, samples.particles[:, None])
        settled = _settled(np.asarray(values)[:, 0], parameters.dim)
        history = samples.history["particles"]
        draws = jnp.asarray(history[len(history) // 2 :, settled])
        draws = coordinates.inverse(draws)
        _check_spread(parameters, draws, free)
        points = coordinates.inverse(samples.particles[settled])
        coordinates, spread = _measured(parameters, draws)
    start = coordinates.forward(points)
    density = StandardizedDensity(log_density, coordinates)
    if check:
        check_proper(density, parameters, start)
    periods = jnp.asarray(parameters.periods, ones.dtype) / coordinates.width
    wraps = parameters.periodic is not None
    return Pilot(
        coordinates, density, start,
        WideReference(_WIDER * spread / coordinates.width, periods),
        _ROUNDS * (_NUM_STEPS + 1) * len(points), parameters.group,
        Periodic(np.asarray(periods)) if wraps else None,
    )  # fmt: skip


def points_around(
    key: Key, log_density: LogDensity, parameters: Parameters, num: int
) -> Float[Array, "chain dim"]:
    """Return spread points around the example where the density is finite.

    Raises:
        ValueError: If there are none.
    """
    noise_key, phase_key = jr.split(key)
    center, shape = parameters.example, (num, parameters.dim)
    noise = jr.normal(noise_key, shape, center.dtype)
    phases = jr.uniform(phase_key, shape, center.dtype)
    wraps = jnp.asarray(np.isfinite(parameters.periods))
    periods = jnp.where(wraps, jnp.asarray(parameters.periods, center.dtype), 1)
    for spread in _SPREADS:
        away = jnp.where(wraps[None], min(spread, 1) * periods[None] * phases,
                         spread * noise)  # fmt: skip
        points = center[None] + away
        good = are_finite(log_density, points)
        if np.any(good):
            return points[np.resize(np.flatnonzero(good), num)]
    raise ValueError(
        "`log_density` or its gradient is not finite at the `example` of the "
        "parameters, nor around it: give an example, or a `start`, where it is."
    )


def are_finite(log_density: LogDensity, points: Float[Array, "n dim"]) -> np.ndarray:
    """Return whether the density and its gradient are finite at each point."""
    values, scores = _values_and_scores(log_density, points)
    return np.isfinite(values) & np.all(np.isfinite(scores), axis=1)


@eqx.filter_jit
def _values_and_scores(log_density, points):
    return jax.vmap(jax.value_and_grad(log_density))(points)


def _settled(values: np.ndarray, dim: int) -> np.ndarray:
    """Return as many numbers of chains, without those stuck far below the others.

    Draws of a wide prior may be where chains cannot move at the step of the rest.
    """
    limit = np.quantile(values, _HIGH) - (_SLACK + _SLACK_OF_COORDINATE * dim)
    return np.resize(np.flatnonzero(values >= limit), len(values))


def _check_spread(
    parameters: Parameters, draws: Float[Array, "record chain dim"], free: np.ndarray
) -> None:
    far = np.abs(np.asarray(draws)).max(axis=(0, 1))
    gone = ~(far < _MOST) & free
    if np.any(gone):
        how = "lets chains drift off without end"
        raise runs_away(parameters, int(np.argmax(gone)), how)


def _measured(
    parameters: Parameters, draws: Float[Array, "record chain dim"]
) -> tuple[Coordinates, Float[Array, " dim"]]:
    """Return coordinates in the width inside a mode, and the width of all modes.

    All are means over the labels.
    """
    periods = jnp.asarray(parameters.periods, draws.dtype)
    wraps = jnp.isfinite(periods)
    inside = jnp.mean(jnp.var(draws, axis=0), axis=0)
    inside = jnp.sqrt(pooled(parameters, inside))
    center = pooled(parameters, jnp.mean(draws, axis=(0, 1)))
    center = jnp.where(wraps, 0, without_signs(parameters, center))
    gaps = draws - center[None, None]
    spread = jnp.sqrt(pooled(parameters, jnp.mean(gaps**2, axis=(0, 1))))
    spread = jnp.clip(spread, _LEAST, None)
    most = jnp.where(wraps, periods / 12**0.5, spread)
    width = jnp.clip(inside, 1e-3 * most, most)
    return Coordinates(center, width), spread
