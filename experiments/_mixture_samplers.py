"""The samplers of the mixture of galaxies, and what measures their draws."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein.kernels import AbstractKernel
from equistein.posteriors import Pilot, PosteriorSamples
from equistein.runs import Outcome, seed_outcome
from equistein.samplers import (
    AbstractMarkovChains,
    from_blackjax,
    MALA,
    run,
    SVGD,
    vector_adam,
)
from experiments._engine import Key, Particles
from experiments._mixture_model import Mixture, Reading, Yardstick
from experiments._sampling import SMCConfig

_STEP_SIZE = 0.1  # the first one of MALA, and the length of the steps of SVGD
_OPTIMIZER = vector_adam(_STEP_SIZE)


_NOISE = 0.1  # the Langevin step of SVGD
_ENOUGH = 1_000  # independent draws
NUM_FLOORS = 10
_FAR = 1_000  # seeds of the reference, far from those of the trials


@dataclasses.dataclass(frozen=True, kw_only=True)
class MixtureConfig(SMCConfig):
    """Settings of `mixture`.

    Attributes:
        num_components: The components of the mixture that is sampled.
        evidence_components: The numbers of components whose evidence is compared.
        num_draws: The draws of each sampler of chains that are looked at; the most
            particles of vanilla SVGD where it has as many as there are copies.
        num_reference: The draws of the reference, and of that of the floor.
        num_temperatures: Those of tempering.
        num_chains: Its ladders, each with one chain of the target; those of NUTS.
        num_steps: Its steps.
        every: The number of them between two draws of a chain.
        nuts_steps: The transitions of each.
        num_particles: The particles of SVGD.
        svgd_steps: Its steps.
    """

    num_seeds: int = 2
    num_components: int = 3
    evidence_components: tuple[int, ...] = (2, 3, 4)
    num_draws: int = 512
    num_reference: int = 2_048
    num_temperatures: int = 12
    num_chains: int = 32
    num_steps: int = 3_000
    every: int = 15
    num_smc_particles: int = 1_024
    num_moves: int = 20
    nuts_steps: int = 300
    num_particles: int = 64
    svgd_steps: int = 1_000

    def __post_init__(self):
        """Raise `ValueError` for settings that do not go together."""
        super().__post_init__()
        if self.num_steps < 4 * self.every:
            raise ValueError(
                "`num_steps` must be at least 4 times `every`, but got "
                f"{self.num_steps} and {self.every}."
            )


class Found(NamedTuple):
    """What a sampler found.

    Its draws, flat points; the evaluations of all chains or particles together; further
    metrics; and the draws of a single chain, where there are chains.
    """

    points: Particles
    evaluations: float
    numbers: dict[str, Any]
    chain: Particles | None = None


def _thinned(points: Float[Array, "*all dim"], num: int) -> Float[Array, "kept dim"]:
    """Return so many of the points, evenly spread."""
    points = points.reshape(-1, points.shape[-1])
    return points[np.linspace(0, len(points) - 1, min(num, len(points))).astype(int)]


class Samplers:
    """The samplers of one model, each from a key and a start of flat points.

    What measures their draws, a reference and floors, is made when first asked for.
    """

    def __init__(self, config: MixtureConfig, num_components: int):
        self.config = config
        self.reading = Reading(Mixture(num_components))
        self.posterior = self.reading.posterior
        self.floor = functools.cache(self._floor)

    def start(self, key: Key) -> Particles:
        """Return draws from the prior, enough for any of the samplers."""
        config = self.config
        num = max(config.num_chains, config.num_particles, config.num_draws)
        return self.posterior.draw_start(key, num)  # type: ignore[misc]

    def default(self, key: Key) -> PosteriorSamples:
        """Return what `posterior.run` gives by default."""
        config = self.config
        return self.posterior.run(
            key, num_chains=config.num_chains, num_steps=config.num_steps,
            num_draws=config.num_steps // (2 * config.every),
            num_temperatures=config.num_temperatures, progress=True,
        )  # fmt: skip

    def tempering(self, key: Key, start: Particles) -> Found:
        """The default: draws, log evidence, and what they cost."""
        del start  # it draws the same from the prior
        samples = self.default(key)
        places = jnp.swapaxes(samples.points, 0, 1)
        numbers = {
            "log_evidence": samples.log_evidence,
            "log_evidence_error": samples.log_evidence_error,
            "round_trips": float(np.sum(samples.samples.summary["round_trips"])),
        }
        return self._of_chains(places, samples.evaluations, numbers)

    @functools.cached_property
    def _nuts(self) -> AbstractMarkovChains:
        import blackjax

        return from_blackjax(blackjax.nuts)

    def nuts(self, key: Key, start: Particles) -> Found:
        """Chains of BlackJAX's NUTS."""
        num, chains = self.config.nuts_steps, self.config.num_chains
        samples = run(
            key, self._nuts, self.posterior.log_density, start[:chains], num_steps=num,
            record_every=1, keep=chains, check=False, progress=True,
        )  # fmt: skip
        spent = float(chains) * samples.history["evaluations"][-1]
        places = jnp.asarray(samples.history["particles"][num // 2 :])
        return self._of_chains(places, spent, {})

    def smc(self, key: Key, start: Particles) -> Found:
        """Annealed sequential Monte Carlo from the default's reference."""
        del start  # exact samples of the reference are one
        config, pilot = self.config, self.posterior.pilot(key, check=False)
        chains, density = MALA(_STEP_SIZE), pilot.log_density
        samples, spent = config.annealed(key, chains, pilot.reference, density)
        drawn = jax.vmap(pilot.coordinates.unwhiten)(samples.particles)
        points, spent = _thinned(drawn, config.num_draws), spent + pilot.evaluations
        names = {"log_evidence": "log_z", "log_evidence_error": "log_z_error"}
        numbers = {name: float(samples.summary[key]) for name, key in names.items()}
        return Found(points, spent, numbers)

    def svgd(
        self,
        kernel: Callable[[Pilot], AbstractKernel],
        num: int,
        key: Key,
        start: Particles,
    ) -> Found:
        """So many particles of SVGD with Langevin noise, as a pilot scales them."""
        pilot, steps = self.posterior.pilot(key, check=False), self.config.svgd_steps
        sampler = SVGD(kernel(pilot), _OPTIMIZER, langevin=_NOISE, score_clip=100.0)
        begin = jax.vmap(pilot.coordinates.whiten)(start[:num])
        samples = run(
            key, sampler, pilot.log_density, begin,
            num_steps=steps, check=False, progress=True,
        )  # fmt: skip
        points = jax.vmap(pilot.coordinates.unwhiten)(samples.particles)
        return Found(points, float(num * steps) + pilot.evaluations, {})

    def _of_chains(
        self,
        places: Float[Array, "record chain dim"],
        spent: float,
        numbers: dict[str, Any],
    ) -> Found:
        """Return what chains found, and what an effective thousand draws cost."""
        size = self.reading.effective_size(places)
        numbers = numbers | {
            "effective_size": size,
            "evaluations_to_1000": _ENOUGH * float(spent) / size,
        }
        points = _thinned(places, self.config.num_draws)
        return Found(points, float(spent), numbers, jnp.asarray(places[:, 0]))

    @functools.cached_property
    def references(self) -> list[Particles]:
        """Draws of two runs: to compare with, and for the floor."""
        runs = [self.default(jr.key(_FAR + part)).points for part in (0, 1)]
        return [_thinned(points, self.config.num_reference) for points in runs]

    @functools.cached_property
    def yardstick(self) -> Yardstick:
        pilot = self.posterior.pilot(jr.key(_FAR), check=False)
        spread = jnp.diagonal(pilot.reference.metric.covariance) ** 0.5
        wide = jnp.sqrt(jnp.diag(pilot.coordinates.covariance)) * spread
        return Yardstick(self.posterior, wide, self.references[0])

    def exact(self, index: int, num: int) -> Particles:
        """Return one of many draws of the second reference, whose labels are random."""
        pool = self.references[1]
        chosen = np.random.default_rng(index).choice(len(pool), num, replace=False)
        return pool[chosen]

    def _floor(self, num: int) -> dict[str, float]:
        """Return the distances of so many exact samples, on average."""
        rows = [self.yardstick(self.exact(i, num)) for i in range(NUM_FLOORS)]
        return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}

    def outcome(self, found: Found, arrays: dict[str, Any] | None = None) -> Outcome:
        """Return the outcome of what a sampler found."""
        points = jnp.asarray(found.points)
        distances, floors = self.yardstick(points), self.floor(len(points))
        ratios = {
            f"{name}_ratio": float(distances[name]) / floors[name] for name in floors
        }
        metrics = {
            **distances, **ratios, "num_draws": len(points),
            "evaluations": found.evaluations,
        }  # fmt: skip
        shown = points if found.chain is None else found.chain
        return seed_outcome(
            metrics | found.numbers, points, stacked=arrays,
            arrays={"first_component": self.reading.means(shown)[:, 0]},
        )  # fmt: skip
