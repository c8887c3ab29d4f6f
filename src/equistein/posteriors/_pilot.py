"""Short chains that find where a posterior is, how wide, and coordinates for it."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein._arrays import on_device
from equistein._types import Key, LogDensity, Scalar
from equistein.features import Periodic
from equistein.groups import AbstractGroup
from equistein.kernels import Equivariant, PeriodicRBF, Preconditioner, RBF
from equistein.posteriors._parameters import Parameters
from equistein.samplers import (
    FittedNormal,
    MALA,
    run,
    suppress_warnings,
    warn_of_samples,
)

_ROUNDS = 5
_NUM_STEPS = 200  # a round
_WIDER = 1.5  # the reference than the posterior
_HIGH = 0.75  # quantile of the log density that chains are compared with
_SLACK, _SLACK_OF_COORDINATE = 20.0, 3.0  # of the log density
_LEAST = 1e-10  # width
_SPREADS = (1.0, 0.1, 0.01, 0.0)  # of a start around the example
_NEAR, _FAR = 1e4, 1e10  # widths away, between which a density must fall off
_STEEPER = 1.01  # than 1 / |x|, up to rounding
_NUM_POINTS = 4  # that this is checked from


class StandardizedDensity(eqx.Module):
    r"""The log density of coordinates z of a point $u = c + F z$, $\log p(u) |F|$.

    It integrates to the same evidence.
    """

    log_density: LogDensity
    coordinates: Preconditioner

    def __call__(self, z: Float[Array, " dim"]) -> Scalar:
        value = self.log_density(self.coordinates.unwhiten(z))
        return value + self.coordinates.log_det


class Pilot(eqx.Module):
    """Place and widths of a posterior, to set up a sampler with.

    Attributes:
        coordinates: Coordinates $z = (u - c) / h$ of flat points u, with the
            posterior's center at the origin and, in each of its modes, about unit
            width. The group acts on them as on flat points: center and widths are equal
            for exchangeable ones.
        log_density: The log density of z.
        start: Where the chains ended, as z.
        reference: A normalized density of z, wider and with the same symmetry.
        evaluations: The evaluations of the score by all chains.
        group: The symmetry.
        periodic: The periods of z; None where nothing is periodic.
    """

    coordinates: Preconditioner
    log_density: StandardizedDensity
    start: Float[Array, "chain dim"]
    reference: FittedNormal
    evaluations: int
    group: AbstractGroup
    periodic: Periodic | None

    def kernel(self, bandwidth: float) -> Equivariant:
        """Return the equivariant kernel on z, periodic where z is."""
        if self.periodic is None:
            return Equivariant(RBF(bandwidth), self.group)
        base = PeriodicRBF(bandwidth, periodic=self.periodic)
        return Equivariant(base, self.group)


def run_pilot(
    key: Key, log_density: LogDensity, parameters: Parameters,
    points: Float[Array, "chain dim"], check: bool = True,
) -> Pilot:  # fmt: skip
    """Run chains for some rounds, each in the units of the one before.

    With `check`, raise `ValueError` if the density does not fall off far away.
    """
    ones = np.ones(parameters.dim, parameters.example.dtype)
    start, spread = points, on_device(ones)
    coordinates = Preconditioner.unit(on_device(0 * ones))
    for i in range(_ROUNDS):
        density = StandardizedDensity(log_density, coordinates)
        with suppress_warnings():  # the ends are checked below
            samples = run(
                jr.fold_in(key, on_device(np.uint32(i))),
                MALA(0.1, num_adapt=_NUM_STEPS), density, start,
                num_steps=_NUM_STEPS, record_every=4, keep=len(points), check=i == 0,
            )  # fmt: skip
        values = np.asarray(samples.state.walkers.value)
        # Others stand in place of chains that are stuck far below the rest.
        slack = _SLACK + _SLACK_OF_COORDINATE * parameters.dim
        settled = np.flatnonzero(values >= np.quantile(values, _HIGH) - slack)
        settled = np.resize(settled, len(values))
        places = samples.history["particles"]
        draws = on_device(places[len(places) // 2 :, settled])
        ends = on_device(np.asarray(samples.particles)[settled])
        coordinates, spread, start = _measure(parameters, coordinates, draws, ends)
    density = StandardizedDensity(log_density, coordinates)
    if check:
        check_proper(eqx.filter_jit(far_values)(density, start), parameters)
    width = np.asarray(coordinates.push(on_device(ones)))
    periods = parameters.periods / width
    wide = Preconditioner.unit(on_device(0 * width))
    wide = wide.scaled(on_device(_WIDER * np.asarray(spread) / width))
    reference = FittedNormal(wide, on_device(periods)).refit(wide)
    return Pilot(
        coordinates, density, start, reference,
        _ROUNDS * (_NUM_STEPS + 1) * len(points), parameters.group,
        None if parameters.periodic is None else Periodic(periods),
    )  # fmt: skip


@eqx.filter_jit
def points_around(
    key: Key, log_density: LogDensity, parameters: Parameters, num: int
) -> Float[Array, "chain dim"]:
    """Return points around the example where the density is finite, spread if it is."""
    noise_key, phase_key = jr.split(key)
    center, shape = parameters.example, (num, parameters.dim)
    noise = jr.normal(noise_key, shape, center.dtype)
    phases = jr.uniform(phase_key, shape, center.dtype)
    wraps = np.isfinite(parameters.periods)
    periods = jnp.asarray(np.where(wraps, parameters.periods, 1), center.dtype)

    def at(spread):
        turned = jnp.minimum(spread, 1) * periods[None] * phases
        points = center[None] + jnp.where(wraps[None], turned, spread * noise)
        values, scores = jax.vmap(jax.value_and_grad(log_density))(points)
        return points, jnp.isfinite(values) & jnp.all(jnp.isfinite(scores), axis=1)

    points, good = jax.lax.map(at, jnp.asarray(_SPREADS, center.dtype))
    widest = jnp.argmax(jnp.any(good, axis=1))
    kept = jnp.arange(num) % jnp.maximum(jnp.sum(good[widest]), 1)
    return points[widest][jnp.argsort(~good[widest])[kept]]


def are_finite(log_density: LogDensity, points: Any) -> np.ndarray:
    """Return whether the density and its gradient are finite at each point."""
    both = eqx.filter_vmap(eqx.filter_value_and_grad(log_density))
    values, scores = map(np.asarray, eqx.filter_jit(both)(points))
    return np.isfinite(values) & np.all(np.isfinite(scores), axis=1)


@eqx.filter_jit
def _measure(
    parameters: Parameters,
    coordinates: Preconditioner,
    draws: Float[Array, "record chain dim"],
    ends: Float[Array, "chain dim"],
) -> tuple[Preconditioner, Float[Array, " dim"], Float[Array, "chain dim"]]:
    """Return coordinates in the width inside a mode, and the width of all modes."""
    # Draws and ends of chains are in earlier coordinates; the ends are returned in new.
    back = jax.vmap(coordinates.unwhiten)
    draws, ends = jax.vmap(back)(draws), back(ends)
    periods = jnp.asarray(parameters.periods, draws.dtype)
    wraps = jnp.isfinite(periods)
    inside = jnp.mean(jnp.var(draws, axis=0), axis=0)
    inside = jnp.sqrt(pooled(parameters, inside))
    center = pooled(parameters, jnp.mean(draws, axis=(0, 1)), is_center=True)
    center = jnp.where(wraps, 0, center)
    gaps = draws - center[None, None]
    spread = jnp.sqrt(pooled(parameters, jnp.mean(gaps**2, axis=(0, 1))))
    spread = jnp.clip(spread, _LEAST, None)
    most = jnp.where(wraps, periods / 12**0.5, spread)
    new = Preconditioner.unit(center).scaled(jnp.clip(inside, 1e-3 * most, most))
    return new, spread, jax.vmap(new.whiten)(ends)


def check_proper(values: Array, parameters: Parameters, warns: bool = False) -> None:
    r"""Raise, or warn, unless the density falls faster than $1 / |x_i|$ far away."""
    free, (near, far) = np.isinf(parameters.periods), np.asarray(values)
    with np.errstate(invalid="ignore"):
        change = far - near  # which passes if it overflows
    stays = np.isfinite(change) & (change > -_STEEPER * math.log(_FAR / _NEAR))
    index = np.flatnonzero(np.any(stays, axis=(0, 1)) & free)
    if len(index):
        name = next(n for n, places in parameters.places.items() if index[0] in places)
        text = (
            f"the posterior runs away along '{name}': its density falls no faster than "
            f"1 / |x| from {_NEAR:.0e} to {_FAR:.0e}, so that it cannot be normalized. "
            "Give a proper prior to every parameter, those of components that hold no "
            "data included, and larger units to one that is wider than this."
        )
        if not warns:
            raise ValueError(text)
        warn_of_samples(text, stacklevel=3)


def far_values(
    density: LogDensity, points: Float[Array, "n dim"]
) -> Float[Array, "distance point way dim"]:
    """Return the log density near and far from a few points, each way of each axis."""
    points, dim = points[:_NUM_POINTS], points.shape[1]
    ways = jnp.stack([jnp.eye(dim), -jnp.eye(dim)]).astype(points.dtype)

    def along(distance):
        look = lambda point: jax.lax.map(
            lambda way: density(point + distance * way), ways.reshape(-1, dim),
            batch_size=64,
        )  # fmt: skip
        return jax.vmap(look)(points).reshape(len(points), 2, dim)

    return jax.lax.map(along, jnp.asarray([_NEAR, _FAR], points.dtype))


def pooled(
    parameters: Parameters, numbers: Float[Array, " dim"], is_center: bool = False
) -> Float[Array, " dim"]:
    r"""Return $\frac1{|G|} \sum_g g v$ over the permutations g of labels.

    Along an axis of labels it is the mean; of a matrix whose rows and columns both are
    labels, the diagonal has one mean, and the rest has another. A center is zero where
    labels change their signs.
    """
    classes, factors = [], []  # of each number, that of the first it is exchanged with
    for places, axes in zip(parameters.places.values(), parameters.axes, strict=True):
        index = np.indices(places.shape)
        for axis in axes[1:]:
            index[axis] = index[axis] != index[axes[0]]
        index[list(axes[:1])] = 0
        classes.append(places[tuple(index)].ravel())
        is_zero = bool(axes) and is_center and parameters.signed
        factors.append(np.full(places.size, not is_zero))
    first, factors = np.concatenate(classes), np.concatenate(factors)
    counts = np.maximum(np.bincount(first, minlength=parameters.dim), 1)
    sums = jnp.zeros_like(numbers).at[first].add(numbers)
    return sums[first] * (factors / counts[first]).astype(numbers.dtype)
