"""A posterior: a log density of parameters that have names."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PyTree

from equistein._arrays import as_keys, check_particles, on_device
from equistein._check_arguments import accept_integer_key, check_arguments
from equistein._numbers import check_integers
from equistein._types import AnyKey, Key, Scalar
from equistein.groups import AbstractGroup, check_invariance
from equistein.kernels import Preconditioner
from equistein.posteriors._parameters import Parameters
from equistein.posteriors._pilot import (
    are_finite,
    check_proper,
    log_densities,
    Pilot,
    points_around,
    run_pilot,
)
from equistein.posteriors._posterior_samples import PosteriorSamples
from equistein.samplers import (
    AbstractSampler,
    FittedNormal,
    ParallelTempering,
    run,
    Samples,
    suppress_warnings,
)

_WIDER = 3.0  # the reference of tempering than the start
_NUM_PILOTS = 32  # chains of the pilot


@check_arguments
class Posterior(eqx.Module):
    r"""A log density of parameters that have names, as one of a flat point.

    $$\log p(u) = \log p(x(u)) + \log |\partial x / \partial u|$$

    for the values x of the free numbers u, which samplers move.

    Args:
        log_density: The log density of a tree of values: the log likelihood and the log
            prior, normalized where the evidence matters.
        parameters: The parameters.
        draw_start: A function of a key and a number that returns as many flat points to
            start at, such as draws of the prior. By default around the example.
    """

    function: Callable[[PyTree], Scalar]
    parameters: Parameters
    draw_start: Callable[[Key, int], Float[Array, "chain dim"]] | None

    def __init__(
        self,
        log_density: Callable[[PyTree], Scalar],
        parameters: Parameters,
        draw_start: Callable[[Key, int], Float[Array, "chain dim"]] | None = None,
    ):
        self.function = log_density
        self.parameters = parameters
        self.draw_start = draw_start

    def __repr__(self) -> str:
        return f"Posterior({self.parameters}, symmetric under {self.group})"

    @property
    def group(self) -> AbstractGroup:
        """The symmetry, on flat points."""
        return self.parameters.group

    @property
    def exchangeable(self) -> dict[str, tuple[int, ...]]:
        """The axes of the labels of each parameter that has some."""
        return self.parameters.exchangeable

    def log_density(self, point: Float[Array, " dim"]) -> Scalar:
        """Return the log density of a flat point."""
        value = self.function(self.parameters.unflatten(point))
        return value + self.parameters.log_jacobian(point)

    @accept_integer_key
    def pilot(
        self, key: Key, start: PyTree | None = None, *, check: bool = True
    ) -> Pilot:
        """Find the posterior's place and widths by short chains.

        Args:
            key: The source of randomness.
            start: Trees of values stacked on axis 0, where the chains start. By
                default the prior's draws, or points around the example.
            check: Whether to check the symmetry, and that the density falls off.

        Raises:
            InvarianceError: If the density lacks the symmetry.
            ValueError: If the posterior runs away, as that of an improper prior.
        """
        start_key, key = jr.split(key)
        points = self._start(start_key, start, _NUM_PILOTS)
        if check:
            check_invariance(self.log_density, self.group, points)
        return run_pilot(key, self.log_density, self.parameters, points, check)

    def run(
        self,
        key: AnyKey,
        sampler: AbstractSampler | Callable[[Pilot], AbstractSampler] | None = None,
        *,
        num_chains: int = 32,
        num_steps: int = 2_000,
        num_draws: int = 200,
        num_temperatures: int = 12,
        start: PyTree | None = None,
        check: bool = True,
        progress: bool = False,
    ) -> PosteriorSamples:
        r"""Sample the posterior.

        By default by parallel tempering of HMC, which crosses between modes and
        estimates the evidence. The first half of the steps learns; draws are taken of
        the second. Each draw is moved by a random element of the group, so that all
        $K!$ copies of a mode have equal weights.

        A sampler moves flat points; one that a function of a pilot returns moves the
        pilot's coordinates, with the particles as chains, as
        `lambda pilot: es.AnnealedSMC(es.MALA(0.1), reference=pilot.reference)`.

        Args:
            key: The source of randomness.
            sampler: None for tempering; a sampler; or a function of a `Pilot`.
            num_chains: The number of chains, or particles.
            num_steps: The number of steps.
            num_draws: The number of draws of a chain, at equal distances.
            num_temperatures: That of tempering: at least twice the summary's `barrier`.
            start: Trees of values stacked on axis 0, where the chains start.
            check: Whether to check the symmetry, and that the density falls off.
            progress: Whether to show a progress bar.

        Raises:
            InvarianceError: If the density lacks the symmetry.
            ValueError: If the posterior runs away, as that of an improper prior, or an
                argument does not fit.
        """
        check_integers("run", num_chains=num_chains, num_draws=num_draws)
        check_integers("run", least=2 * num_draws, num_steps=num_steps)
        start_key, pilot_key, run_key, move_key = jr.split(as_keys(key), 4)
        every = num_steps // 2 // num_draws
        pilot, evaluations = None, 0
        if sampler is None or isinstance(sampler, AbstractSampler):
            density = self.log_density
            points = self._start(start_key, start, num_chains)
            if check:
                check_invariance(density, self.group, points)
                check_proper(density, self.parameters, points)
            if sampler is None:
                periods = None
                if self.parameters.periodic is not None:
                    periods = on_device(self.parameters.periods.astype(points.dtype))
                sampler = ParallelTempering(
                    reference=_reference(points, periods),
                    num_temperatures=num_temperatures,
                )
        elif not callable(sampler):
            raise ValueError(
                "`sampler` must be one such as es.HMC(), or a function of a pilot that "
                f"returns one, but got {sampler!r}."
            )
        else:
            pilot = self.pilot(pilot_key, start, check=check)
            sampler = sampler(pilot)
            density, evaluations = pilot.log_density, pilot.evaluations
            points = on_device(
                np.resize(pilot.start, (num_chains, pilot.start.shape[1]))
            )
        # These diagnostics are meaningless for coordinates with labels.
        with suppress_warnings("(R-hat|independent draws)"):
            samples = run(
                run_key, sampler, density, points, num_steps=num_steps // every * every,
                record_every=every, keep=num_chains, progress=progress, check=check,
            )  # fmt: skip
        coordinates = None if pilot is None else pilot.coordinates
        draws, values = self._finish(
            move_key, coordinates, on_device(_draws_of(samples, num_draws))
        )
        spent = int(np.asarray(samples.history["evaluations"])[-1]) * num_chains
        evidence, error = _evidence(samples)
        return PosteriorSamples(
            draws, values, evidence, error,
            evaluations + spent, samples, self,
        )  # fmt: skip

    @eqx.filter_jit
    def _finish(
        self, key: Key, coordinates: Any, draws: Float[Array, "chain draw dim"]
    ) -> tuple[Float[Array, "chain draw dim"], Float[Array, "chain draw"]]:
        """Return flat draws, each moved by a random element, and their densities."""
        if coordinates is not None:
            draws = coordinates.inverse(draws)
        draws = _spread_over_orbits(key, self.group, draws)
        draws = jax.vmap(jax.vmap(self.parameters.wrap))(draws)
        return draws, log_densities(self.log_density, draws)

    def _start(
        self, key: Key, start: PyTree | None, num: int
    ) -> Float[Array, "chain dim"]:
        if start is not None:
            points = jax.vmap(self.parameters.flatten)(start)
            points = check_particles(points, "start")
            return on_device(np.resize(points, (num, self.parameters.dim)))
        if self.draw_start is not None:
            points = self.draw_start(key, 2 * num)
            good = np.flatnonzero(are_finite(self.log_density, points))
            if len(good):
                return on_device(np.asarray(points)[np.resize(good, num)])
        return points_around(key, self.log_density, self.parameters, num)


@eqx.filter_jit
def _reference(
    points: Float[Array, "chain dim"], periods: Float[Array, " dim"] | None
) -> FittedNormal:
    """Return a reference wider than the start, uniform where there is a period."""
    metric = Preconditioner.by_width(points)
    metric = metric.scaled(jnp.full_like(metric.center, _WIDER))
    return FittedNormal(metric, periods).refit(metric)


def _evidence(samples: Samples) -> tuple[float, float]:
    """Return log Z and its error, NaN where the sampler does not estimate them."""
    if "log_z" not in samples.summary:
        return float("nan"), float("nan")
    value = float(samples.summary["log_z"])
    if not np.isfinite(value):
        raise ValueError(
            f"the posterior runs away: its evidence is {value}. Give a proper prior to "
            "every parameter, and a density that is finite wherever it is positive."
        )
    return value, float(samples.summary["log_z_error"])


def _draws_of(samples: Samples, num: int) -> np.ndarray:
    """Return the chains at the last recorded steps, all at temperature 1."""
    betas = samples.history.get("inverse_temperature")
    if betas is not None:
        there = np.asarray(betas)[-num:] >= 1
        if not np.all(there):
            raise ValueError(
                f"at {np.sum(~there)} of the {len(there)} steps that draws are taken "
                "of, the sampler was still hotter than the posterior. Take more "
                "`num_steps`, or fewer `num_draws`."
            )
    return np.swapaxes(samples.history["particles"][-num:], 0, 1)


def _spread_over_orbits(
    key: Key, group: AbstractGroup, points: Float[Array, "chain draw dim"]
) -> Float[Array, "chain draw dim"]:
    """Return each point moved by a random element of the group."""
    flat = points.reshape(-1, points.shape[-1])
    moved = jax.vmap(group.act)(group.sample(key, len(flat)), flat)
    return moved.reshape(points.shape)
