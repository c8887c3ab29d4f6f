"""The samplers that are compared on posteriors."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein._types import Key, Particles
from equistein.experiments.engine._annealed import annealed_to_target
from equistein.experiments.posteriors._config import PosteriorConfig
from equistein.experiments.posteriors._metrics import Reading
from equistein.kernels import AbstractKernel
from equistein.posteriors import Pilot, Posterior, PosteriorSamples
from equistein.samplers import (
    AnnealedSMC,
    from_blackjax,
    MALA,
    run,
    SVGD,
    vector_adam,
)

_NUM_LOOKS = 6
_ENOUGH = 1_000  # independent draws


class Found(NamedTuple):
    """What a sampler found.

    Attributes:
        points: Its draws, flat points.
        evaluations: Evaluations of the score, of all chains or particles together.
        numbers: Further metrics; the log evidence and its error, where measured.
        looks: Evaluations, and draws up to then.
        chain: The draws of a single chain, where there are chains.
    """

    points: Particles
    evaluations: float
    numbers: dict[str, Any]
    looks: list[tuple[float, Particles]]
    chain: Particles | None = None


Sampling = Callable[[Key, Particles], Found]
"""From a key and a start, which are flat points, what a sampler found."""


def run_default(
    config: PosteriorConfig, posterior: Posterior, key: Key
) -> PosteriorSamples:
    """Return what `posterior.run` gives by default."""
    num_draws = config.num_steps // (2 * config.every)
    return posterior.run(
        key,
        num_chains=config.num_chains,
        num_steps=config.num_steps,
        num_draws=num_draws,
        num_temperatures=config.num_temperatures,
        progress=True,
    )


def tempering(config: PosteriorConfig, reading: Reading) -> Sampling:
    """Return the default: draws, log evidence, and what they cost."""

    def found(key: Key, start: Particles) -> Found:
        del start  # it draws the same from the prior
        samples = run_default(config, reading.posterior, key)
        places = jnp.swapaxes(samples.points, 0, 1)
        history, total = samples.samples.history, samples.evaluations
        spent = float(config.num_chains) * history["evaluations"]
        spent = spent + (total - spent[-1])  # the pilot's
        numbers = {
            "log_evidence": samples.log_evidence,
            "log_evidence_error": samples.log_evidence_error,
            "round_trips": float(np.sum(samples.samples.summary["round_trips"])),
        }
        return _of_chains(config, reading, places, spent, numbers)

    return found


def nuts(config: PosteriorConfig, reading: Reading) -> Sampling:
    """Return chains of BlackJAX's NUTS, with its own warm-up."""
    import blackjax

    sampler = from_blackjax(
        blackjax.nuts, num_warmup=config.nuts_warm_up, step_size=0.1
    )
    num, chains = config.nuts_steps, config.num_chains

    def found(key: Key, start: Particles) -> Found:
        samples = run(
            key, sampler, reading.posterior.log_density, start[:chains], num_steps=num,
            record_every=1, keep=chains, check=False, progress=True,
        )  # fmt: skip
        spent = float(chains) * samples.history["evaluations"]
        places = jnp.asarray(samples.history["particles"][num // 2 :])
        return _of_chains(config, reading, places, spent, {})

    return found


def annealed(config: PosteriorConfig, reading: Reading) -> Sampling:
    """Return annealed sequential Monte Carlo from the default's reference."""
    num = config.num_smc_particles

    def found(key: Key, start: Particles) -> Found:
        del start  # exact samples of the reference are one
        pilot = reading.posterior.pilot(key, check=False)
        sampler = AnnealedSMC(
            MALA(config.step_size),
            reference=pilot.reference,
            num_runs=config.num_smc_runs,
            num_moves=config.num_moves,
            share=config.conditional_size,
        )
        like = pilot.reference.sample(key, num)
        samples = annealed_to_target(key, sampler, pilot.log_density, like)
        spent = num * float(samples.history["evaluations"][-1]) + pilot.evaluations
        points = pilot.coordinates.inverse(samples.particles)
        points = thinned(points, config.num_draws)
        names = {"log_evidence": "log_z", "log_evidence_error": "log_z_error"}
        numbers = {name: float(samples.summary[key]) for name, key in names.items()}
        return Found(points, spent, numbers, [(spent, points)])

    return found


def svgd(
    config: PosteriorConfig,
    reading: Reading,
    kernel: Callable[[Pilot], AbstractKernel],
    num: int,
) -> Sampling:
    """Return so many particles of SVGD with Langevin noise, as a pilot scales them."""
    optimizer = vector_adam(config.svgd_step_size)
    steps = config.svgd_steps

    def found(key: Key, start: Particles) -> Found:
        pilot = reading.posterior.pilot(key, check=False)
        sampler = SVGD(
            kernel(pilot), optimizer, langevin=config.noise, score_clip=100.0
        )
        samples = run(
            key, sampler, pilot.log_density, pilot.coordinates.forward(start[:num]),
            num_steps=steps, record_every=max(1, steps // 100), keep=num, check=False,
            progress=True,
        )  # fmt: skip
        taken, places = samples.history["step"], samples.history["particles"]
        places = pilot.coordinates.inverse(jnp.asarray(places))
        looks = [
            (float(num * taken[end - 1]) + pilot.evaluations, places[end - 1])
            for end in _ends(1, len(taken))
        ]
        return Found(looks[-1][1], looks[-1][0], {}, looks)

    return found


def thinned(points: Float[Array, "particle dim"], num: int) -> Float[Array, "kept dim"]:
    """Return so many of the points, evenly spread."""
    return points[np.linspace(0, len(points) - 1, min(num, len(points))).astype(int)]


def _ends(first: int, last: int) -> list[int]:
    """Return a few numbers from the first to the last, in equal ratios."""
    found = np.geomspace(min(first, last), last, _NUM_LOOKS)
    return sorted({round(float(end)) for end in found})


def _of_chains(
    config: PosteriorConfig,
    reading: Reading,
    places: Float[Array, "record chain dim"],
    spent: np.ndarray,
    numbers: dict[str, Any],
) -> Found:
    """Return what chains found, and what an effective thousand draws cost.

    Args:
        config: The settings.
        reading: What reads off draws.
        places: The last draws, of shape (record, chain, dim).
        spent: The evaluations up to each record, those that are not looked at too.
        numbers: Further metrics.
    """
    chains, seen = places.shape[1], spent[-len(places) :]
    looks = []
    for end in _ends(-(-config.num_draws // chains), len(places)):
        pool = places[:end].reshape(-1, places.shape[-1])
        looks.append((float(seen[end - 1]), thinned(pool, config.num_draws)))
    size = reading.effective_size(places)
    numbers = numbers | {
        "effective_size": size,
        "evaluations_to_1000": _ENOUGH * float(seen[-1]) / size,
    }
    chain = jnp.asarray(places[:, 0])
    return Found(looks[-1][1], float(seen[-1]), numbers, looks, chain)
