"""Short chains that find where a posterior is, and how wide."""

import math

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
from equistein.posteriors._parameters import Parameters
from equistein.posteriors._standardized import (
    Coordinates,
    pooled,
    StandardizedDensity,
    WideReference,
    without_signs,
)
from equistein.samplers import MALA, run, suppress_warnings

_ROUNDS = 5
_NUM_STEPS = 200  # a round
_WIDER = 1.5  # the reference than the posterior
_HIGH = 0.75  # quantile of the log density that chains are compared with
_SLACK, _SLACK_OF_COORDINATE = 20.0, 3.0  # of the log density
_LEAST, _MOST = 1e-10, 1e10  # widths
_SPREADS = (1.0, 0.1, 0.01, 0.0)  # of a start around the example
_NEAR, _FAR = 1e4, 1e10  # widths away, between which a density must fall off
_NUM_POINTS = 4  # that this is checked from
_AT_ONCE = 256


class Pilot(eqx.Module):
    """Place and widths of a posterior, to set up a sampler with.

    Attributes:
        coordinates: Coordinates z with the posterior's center at the origin and, in
            each of its modes, about unit width. The group acts on them as on flat
            points.
        log_density: The log density of z.
        start: Where the chains ended, as z.
        reference: A normalized density of z that is wider than the posterior and has
            its symmetry: the hot end of tempering and of sequential Monte Carlo.
        evaluations: The evaluations of the score by all chains.
        group: The symmetry.
        periodic: The periods of z; None where nothing is periodic.
    """

    coordinates: Coordinates
    log_density: StandardizedDensity
    start: Float[Array, "chain dim"]
    reference: WideReference
    evaluations: int
    group: AbstractGroup
    periodic: Periodic | None

    def kernel(self, bandwidth: float) -> Equivariant:
        """Return the equivariant kernel on z, periodic where z is."""
        return equivariant_kernel(bandwidth, self.group, self.periodic)


def equivariant_kernel(
    bandwidth: float, group: AbstractGroup, periodic: Periodic | None
) -> Equivariant:
    if periodic is None:
        return Equivariant(RBF(bandwidth), group)
    return Equivariant(PeriodicRBF(bandwidth, periodic=periodic), group)


def run_pilot(
    key: Key,
    log_density: LogDensity,
    parameters: Parameters,
    points: Float[Array, "chain dim"],
    check: bool = True,
) -> Pilot:
    """Run chains for some rounds, each in the units of the one before.

    With `check`, raise `ValueError` if the density does not fall off far away.
    """
    free = ~np.isfinite(parameters.periods)
    ones = jnp.ones_like(parameters.example)
    coordinates, spread = Coordinates(0 * ones, ones), ones
    for i in range(_ROUNDS):
        density = StandardizedDensity(log_density, coordinates)
        with suppress_warnings():  # the ends are checked below
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
        _check_proper(density, parameters, start)
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
    """Return spread points around the example where the density is finite."""
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
        "`log_density` or its gradient is not finite around the `example` of the "
        "parameters: give an example, or a `start`, where it is."
    )


def are_finite(log_density: LogDensity, points: Float[Array, "n dim"]) -> np.ndarray:
    """Return whether the density and its gradient are finite at each point."""
    values, scores = _values_and_scores(log_density, points)
    return np.isfinite(values) & np.all(np.isfinite(scores), axis=1)


@eqx.filter_jit
def _values_and_scores(log_density, points):
    return jax.vmap(jax.value_and_grad(log_density))(points)


def _settled(values: np.ndarray, dim: int) -> np.ndarray:
    """Return indices of chains, others in place of those stuck far below the rest."""
    limit = np.quantile(values, _HIGH) - (_SLACK + _SLACK_OF_COORDINATE * dim)
    return np.resize(np.flatnonzero(values >= limit), len(values))


def _check_spread(
    parameters: Parameters, draws: Float[Array, "record chain dim"], free: np.ndarray
) -> None:
    far = np.abs(np.asarray(draws)).max(axis=(0, 1))
    gone = ~(far < _MOST) & free
    if np.any(gone):
        raise _runs_away(
            parameters, int(np.argmax(gone)), "lets chains drift off without end"
        )


def _measured(
    parameters: Parameters, draws: Float[Array, "record chain dim"]
) -> tuple[Coordinates, Float[Array, " dim"]]:
    """Return coordinates in the width inside a mode, and the width of all modes."""
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


def _check_proper(
    density: StandardizedDensity, parameters: Parameters, points: Float[Array, "n dim"]
) -> None:
    r"""Raise unless the density falls faster than $1 / |z_i|$ along each coordinate.

    It is evaluated 10^4 and 10^10 widths away from a few points; overflow passes.
    """
    free = np.isinf(parameters.periods)
    near, far = (np.asarray(_along(density, points[:_NUM_POINTS], t)) for t in
                 (_NEAR, _FAR))  # fmt: skip
    with np.errstate(invalid="ignore"):
        stays = far - near > -math.log(_FAR / _NEAR)
    stays &= np.isfinite(near) & np.isfinite(far)
    stays = np.any(stays, axis=(0, 1)) & free
    if np.any(stays):
        i = int(np.argmax(stays))
        raise _runs_away(parameters, i, "does not fall off there")


def _runs_away(parameters: Parameters, index: int, how: str) -> ValueError:
    name = next(n for n, places in parameters.places.items() if index in places)
    return ValueError(
        f"the posterior runs away along '{name}': its density {how}, so that it cannot "
        "be normalized. Give a proper prior to every parameter, those of components "
        "that hold no data included."
    )


@eqx.filter_jit
def _along(
    density: StandardizedDensity, points: Float[Array, "n dim"], distance: float
) -> Float[Array, "point way dim"]:
    """Return the log density away from points, each way along each coordinate."""
    dim = points.shape[1]
    steps = distance * jnp.stack([jnp.eye(dim), -jnp.eye(dim)]).astype(points.dtype)
    look = lambda point: jax.lax.map(
        lambda step: density(point + step), steps.reshape(-1, dim), batch_size=64
    )
    return jax.vmap(look)(points).reshape(len(points), 2, dim)


@eqx.filter_jit
def log_densities(
    log_density: LogDensity, points: Float[Array, "chain draw dim"]
) -> Float[Array, "chain draw"]:
    """Return the log density of each point."""
    flat = points.reshape(-1, points.shape[-1])
    values = jax.lax.map(log_density, flat, batch_size=_AT_ONCE)
    return values.reshape(points.shape[:2])
