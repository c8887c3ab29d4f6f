"""A posterior: a log density of parameters that have names."""

import dataclasses
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
from equistein.energies import values_at
from equistein.groups import AbstractGroup, check_invariance
from equistein.kernels import Preconditioner
from equistein.posteriors._parameters import Parameters
from equistein.posteriors._pilot import (
    are_finite,
    check_proper,
    far_values,
    Pilot,
    points_around,
    run_pilot,
)
from equistein.posteriors._posterior_samples import (
    invariants_of,
    PosteriorSamples,
    worst_r_hat,
)
from equistein.samplers import (
    AbstractSampler,
    check_signature,
    FittedNormal,
    HMC,
    ParallelTempering,
    run,
    Samples,
    suppress_warnings,
    warn_of_samples,
)

_WIDER = 3.0  # the reference of tempering than the start
_DIRECT = 8  # steps of a trajectory without tempering
_MIXED, _APART = 1.05, 1.1  # R-hat up to which chains mix, and above which they do not
_NUM_PILOTS = 32  # chains of the pilot
_AT_END = 0.005  # of the draws, that round to an end of their range


@check_arguments
class Posterior(eqx.Module):
    r"""A log density of parameters that have names, as one of a flat point.

    $$\log p(u) = \log p(x(u)) + \log |\partial x / \partial u|$$

    for the values x of the free numbers u, which samplers move.

    Args:
        log_density: The log density of a tree of values: the log likelihood and the log
            prior, normalized where the evidence matters.
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

        They start at trees of values stacked on axis 0, by default at the prior's draws
        or around the example. With `check` the density must have the symmetry, and fall
        off far away.
        """
        start_key, key = jr.split(key)
        self._check_value()
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
        evidence: bool = True,
        start: PyTree | None = None,
        check: bool = True,
        progress: bool = False,
    ) -> PosteriorSamples:
        r"""Sample the posterior.

        By default by parallel tempering of HMC, which crosses between modes and
        estimates the evidence. The first half of the steps learns; draws are taken of
        the second. Each draw is moved by a random element of the group, so that all
        $K!$ copies of a mode have equal weights.

        Where no `evidence` is asked for, tempering takes a tenth of the steps, and
        chains of HMC begin where it ended. If they mix (R-hat up to 1.05), the result
        is theirs, else that of tempering; its `choice` says which, and why.

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
            evidence: Whether the evidence is asked for.
            start: Trees of values stacked on axis 0, where the chains start.
            check: Whether to check the symmetry, and that the density falls off.
            progress: Whether to show a progress bar.
        """
        key = as_keys(key)
        self._check_value()
        check_integers("run", num_chains=num_chains, num_draws=num_draws)
        check_integers("run", least=2 * num_draws, num_steps=num_steps)
        flat = sampler is None or isinstance(sampler, AbstractSampler)
        around = flat and start is None and self.draw_start is None
        keys, begin = _begin(key, self, num_chains if around else 0)

        def draw(sampler: Any, points: Any, num_steps: int, pilot: Pilot | None = None):
            every = max(1, num_steps // 2 // num_draws)
            # These diagnostics are meaningless for coordinates with labels.
            with suppress_warnings("(R-hat|independent draws)"):
                samples = run(
                    keys.pop(), sampler, (pilot or self).log_density, points,
                    num_steps=num_steps // every * every, record_every=every,
                    keep=num_chains, progress=progress, check=check,
                )  # fmt: skip
            return self._read(keys.pop(), samples, num_draws, pilot)

        if not flat:
            if not callable(sampler):
                raise ValueError(
                    "`sampler` must be one such as es.HMC(), or a function of a pilot "
                    f"that returns one, but got {sampler!r}."
                )
            pilot = self.pilot(keys[1], start, check=check)
            points = np.resize(pilot.start, (num_chains, pilot.start.shape[1]))
            return draw(sampler(pilot), on_device(points), num_steps, pilot)
        if begin is None:
            begin = _survey(self, self._start(keys[0], start, num_chains))
        points, far, reference = begin
        if check and self.exchangeable:
            check_invariance(self.log_density, self.group, points)
        if check:
            check_proper(far, self.parameters, warns=sampler is not None)
        tempering = ParallelTempering(
            reference=reference, num_temperatures=num_temperatures
        )
        if sampler is not None or evidence:
            return draw(sampler or tempering, points, num_steps)
        with suppress_warnings():
            first = draw(tempering, points, max(num_steps // 10, num_draws))
            ends = on_device(first.samples.particles)
            found = draw(HMC(num_leapfrogs=_DIRECT), ends, 4 * num_draws)
        spent, (r_hat, name) = first.evaluations + found.evaluations, found.mixing
        choice = "HMC without tempering"
        if not r_hat <= _MIXED:
            choice, found = "tempering", draw(tempering, points, num_steps)
            spent += found.evaluations
        choice += f" (R-hat {r_hat:.3g} of {name}, of HMC from where tempering ended)"
        return dataclasses.replace(found, evaluations=spent, choice=choice)

    def _check_value(self) -> None:
        """Raise `ValueError` unless the density of a tree is a scalar."""
        density = lambda point: self.function(self.parameters.unflatten(point))
        check_signature(density, np.asarray(self.parameters.example)[None])

    def _read(
        self, key: Key, samples: Samples, num_draws: int, pilot: Pilot | None
    ) -> PosteriorSamples:
        """Return draws of samples, and warn of chains that are apart."""
        points = on_device(_draws_of(samples, num_draws))
        coordinates, before = pilot and pilot.coordinates, pilot and pilot.evaluations
        draws, values, invariants, at_end = self._finish(key, coordinates, points)
        for name, part in jax.device_get(at_end).items():
            if part > _AT_END:
                warn_of_samples(
                    f"{part:.1%} of the draws of '{name}' are where its numbers "
                    "round to an end of their range: what is beyond is missing from "
                    "the draws and the evidence. Use double precision (JAX_ENABLE_X64="
                    "1), or its log or logit as the parameter.",
                    stacklevel=4,
                )
        chains = "acceptance" in samples.history
        mixing = worst_r_hat(invariants) if chains else (1.0, "")
        if mixing[0] > _APART:
            warn_of_samples(
                f"R-hat of {mixing[1]} is {mixing[0]:.3g}: the chains are not where "
                "the others are. Take more `num_steps` or `num_temperatures`.",
                stacklevel=4,
            )
        spent = int(np.asarray(samples.history["evaluations"])[-1]) * len(points)
        return PosteriorSamples(
            draws, values, *_evidence(samples), spent + (before or 0), samples, self,
            mixing,
        )  # fmt: skip

    @eqx.filter_jit
    def _finish(
        self, key: Key, coordinates: Any, draws: Float[Array, "chain draw dim"]
    ) -> tuple[Array, Array, dict[str, Array], dict[str, Array]]:
        """Return draws moved at random, densities, invariants, how many are at ends."""
        flat = draws.reshape(-1, draws.shape[-1])
        if coordinates is not None:
            flat = jax.vmap(coordinates.unwhiten)(flat)
        flat = jax.vmap(self.group.act)(self.group.sample(key, len(flat)), flat)
        flat = jax.vmap(self.parameters.wrap)(flat)
        values = values_at(self.log_density, flat).reshape(draws.shape[:2])
        draws, at_end = flat.reshape(draws.shape), self.parameters.fraction_at_end(flat)
        return draws, values, invariants_of(self.parameters, draws, values), at_end

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
def _begin(key: Key, posterior: Posterior, num: int) -> tuple[Any, Any]:
    """Return a list of keys, and the survey of points around the example, if any."""
    keys = list(jr.split(key, 8))
    if not num:
        return keys, None
    points = points_around(keys[0], posterior.log_density, posterior.parameters, num)
    return keys, _survey(posterior, points)


@eqx.filter_jit
def _survey(posterior: Posterior, points: Float[Array, "chain dim"]) -> Any:
    """Return points, the density far from them, and a wider reference."""
    periodic, periods = posterior.parameters.periodic, None
    if periodic is not None:
        periods = jnp.asarray(posterior.parameters.periods, points.dtype)
    metric = Preconditioner.by_width(points)
    metric = metric.scaled(jnp.full_like(metric.center, _WIDER))
    reference = FittedNormal(metric, periods).refit(metric)
    return points, far_values(posterior.log_density, points), reference


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
