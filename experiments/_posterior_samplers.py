"""The settings that the experiments on posteriors share."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein.kernels import (
    AbstractKernel,
    Equivariant,
    RBF,
)
from equistein.posteriors import Pilot, Posterior, PosteriorSamples
from equistein.runs import FLOOR, Outcome, seed_outcome
from equistein.samplers import AnnealedSMC, from_blackjax, MALA, run, SVGD, vector_adam
from experiments._engine import (
    AbstractConfig,
    annealed_to_target,
    Entry,
    has_blackjax,
    Stage,
    Trial,
)
from experiments._mixture_model import Mixture, Reading, Yardstick
from experiments._types import Key, Particles


@dataclasses.dataclass(frozen=True, kw_only=True)
class PosteriorConfig(AbstractConfig):
    """Settings of the experiments on posteriors.

    Attributes:
        num_draws: The draws of each sampler of chains that are looked at.
        num_reference: The draws of the reference, and of that of the floor.
        reference_runs: The runs of tempering that each of these is made of.
        num_temperatures: Those of tempering.
        num_chains: Its ladders, each with one chain of the target; those of NUTS.
        num_steps: Its steps.
        every: The number of them between two draws of a chain.
        num_smc_particles: The particles of sequential Monte Carlo, all runs together.
        num_smc_runs: Its independent runs.
        num_moves: The moves of a particle at each temperature.
        ess_fraction: The conditional effective sample size aimed at, a fraction.
        step_size: The first step of MALA, which adapts.
        nuts_warm_up: The steps of its warm-up.
        nuts_steps: The transitions of each.
        num_particles: The particles of SVGD.
        most_particles: Those of vanilla SVGD where it has as many as there are
            copies of the others, at most.
        svgd_steps: Its steps.
        svgd_step_size: The length of its normalized steps.
        noise: Its Langevin step.
        most_elements: Those of a group whose orbits are compared element by element.
    """

    num_seeds: int = 2
    num_draws: int = 512
    num_reference: int = 2_048
    reference_runs: int = 1
    num_temperatures: int = 12
    num_chains: int = 32
    num_steps: int = 3_000
    every: int = 15
    num_smc_particles: int = 1_024
    num_smc_runs: int = 16
    num_moves: int = 20
    ess_fraction: float = 0.9
    step_size: float = 0.1
    nuts_warm_up: int = 300
    nuts_steps: int = 300
    num_particles: int = 64
    most_particles: int = 512
    svgd_steps: int = 1_000
    svgd_step_size: float = 0.1
    noise: float = 0.1
    most_elements: int = 120

    below_one: ClassVar[Sequence[str]] = ("ess_fraction",)
    or_zero: ClassVar[Sequence[str]] = ("noise", "nuts_warm_up")

    def __post_init__(self):
        """Raise `ValueError` for settings that do not go together."""
        super().__post_init__()
        runs, particles = self.num_smc_runs, self.num_smc_particles
        if particles < 2 * runs or particles % runs:
            raise ValueError(
                "`num_smc_particles` must be twice `num_smc_runs` or more, and a "
                f"multiple of it, but got {particles} for {runs} runs."
            )
        if self.num_steps < 4 * self.every:
            raise ValueError(
                "`num_steps` must be at least 4 times `every`, but got "
                f"{self.num_steps} and {self.every}."
            )

    @property
    def num_starts(self) -> int:
        """The number of points that are drawn for any of the samplers."""
        return max(self.num_chains, self.num_particles, self.most_particles)


SMOKE: dict[str, Any] = {
    **{"num_seeds": 1, "num_draws": 16, "num_reference": 16, "num_temperatures": 3},
    **{"num_chains": 8, "num_steps": 32, "every": 4, "num_smc_particles": 16},
    **{"num_smc_runs": 4, "num_moves": 1, "ess_fraction": 0.2, "nuts_warm_up": 0},
    **{"nuts_steps": 8, "num_particles": 16, "most_particles": 16, "svgd_steps": 8},
}
"""Settings of runs that only show that all works."""

PAPER: dict[str, Any] = {
    **{"num_seeds": 10, "reference_runs": 4, "num_chains": 64, "num_steps": 10_000},
    **{"every": 50, "num_smc_particles": 8_192, "num_moves": 40, "nuts_warm_up": 1_000},
    **{"nuts_steps": 2_000, "svgd_steps": 5_000},
}
"""Settings of long runs."""


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
        key, num_chains=config.num_chains, num_steps=config.num_steps,
        num_draws=num_draws, num_temperatures=config.num_temperatures, progress=True,
    )  # fmt: skip


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
            ess_fraction=config.ess_fraction,
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


_NUM_FLOORS = 10
_FAR = 1_000  # seeds of the reference, far from those of the trials

Extra = Callable[[Trial, str, Found], dict[str, Any]]
"""From a trial, a sampler's name and what it found, further arrays of its outcome."""


class Assembly:
    """What the samplers of one model share: coordinates, reference and floors."""

    def __init__(self, config: PosteriorConfig, model: Mixture):
        self.config = config
        self.model = model
        self.floors: dict[int, dict[str, float]] = {}

    @functools.cached_property
    def reading(self) -> Reading:
        return Reading(self.model, self.model.posterior())

    @functools.cached_property
    def references(self) -> list[Particles]:
        """Draws of two sets of runs: to compare with, and for the floor."""
        config, repeats = self.config, self.config.reference_runs
        parts = []
        for part in (0, 1):
            runs = [
                run_default(config, self.reading.posterior, jr.key(_FAR + index))
                for index in range(part * repeats, (part + 1) * repeats)
            ]
            pool = jnp.concatenate([samples.points for samples in runs])
            pool = pool.reshape(-1, pool.shape[-1])
            parts.append(thinned(pool, config.num_reference))
        return parts

    @functools.cached_property
    def yardstick(self) -> Yardstick:
        posterior = self.reading.posterior
        pilot = posterior.pilot(jr.key(_FAR), check=False)
        wide = pilot.coordinates.width * pilot.reference.width
        most = self.config.most_elements
        return Yardstick(posterior, wide, self.references[0], most)

    def start(self, key: Key) -> Particles:
        """Return draws from the prior."""
        return self.model.prior_points(key, self.config.num_starts)

    def exact(self, index: int, num: int) -> Particles:
        """Return one of many draws of the second reference, whose labels are random."""
        pool = self.references[1]
        chosen = np.random.default_rng(index).choice(len(pool), num, replace=False)
        return pool[chosen]

    def floor(self, num: int) -> dict[str, float]:
        """Return the distances of so many exact samples, on average."""
        if num not in self.floors:
            rows = [self.yardstick(self.exact(i, num)) for i in range(_NUM_FLOORS)]
            self.floors[num] = {
                name: float(np.mean([row[name] for row in rows])) for name in rows[0]
            }
        return self.floors[num]

    def outcome(self, found: Found, arrays: dict[str, Any]) -> Outcome:
        """Return the outcome of what a sampler found."""
        points = jnp.asarray(found.points)
        distances, floors = self.yardstick(points), self.floor(len(points))
        ratios = {
            f"{name}_ratio": float(distances[name]) / floors[name] for name in floors
        }
        metrics = {
            **{name: float(value) for name, value in distances.items()}, **ratios,
            **self.reading.numbers(points), **self.reading.coverage(points),
            "num_draws": len(points), "evaluations": found.evaluations,
        }  # fmt: skip
        rows = [self.yardstick(jnp.asarray(look)) for _, look in found.looks]
        history = {}
        if rows:
            history = {name: [float(row[name]) for row in rows] for name in rows[0]}
            history["step"] = [spent for spent, _ in found.looks]
        shown = points if found.chain is None else found.chain
        first = self.reading.components(shown)[:, 0]
        return seed_outcome(
            metrics | found.numbers, points, history=history,
            arrays={"first_component": first}, stacked=arrays,
        )  # fmt: skip


def entries(
    config: PosteriorConfig,
    model: Mixture,
    extra: Extra = lambda trial, name, found: {},
) -> list[Entry]:
    """Return the samplers, with the floor first.

    Args:
        config: The settings.
        model: The model.
        extra: What adds further arrays to an outcome.
    """
    assembly = Assembly(config, model)

    def floor(trial: Trial) -> Outcome:
        points = assembly.exact(
            trial.index, min(config.num_draws, config.num_reference)
        )
        return assembly.outcome(Found(points, 0.0, {}, []), {})

    def sampled(name: str, build: Callable[[], Sampling]) -> Stage:
        made = functools.cache(build)

        def stage(trial: Trial) -> Outcome:
            found = made()(trial.key(1), assembly.start(trial.key(0)))
            return assembly.outcome(found, extra(trial, name, found))

        return stage

    return [
        Entry(FLOOR, floor, label="as many exact samples", num_seeds=_NUM_FLOORS),
        *(
            Entry(name, sampled(name, build), note)
            for name, (build, note) in _samplings(config, model, assembly).items()
        ),
    ]


def _samplings(
    config: PosteriorConfig, model: Mixture, assembly: Assembly
) -> dict[str, tuple[Callable[[], Sampling], str]]:
    """Return what makes each sampler, and the sentence that its numbers need."""
    few = config.num_particles

    def plain(pilot: Pilot) -> AbstractKernel:
        return RBF()

    def equivariant(pilot: Pilot) -> AbstractKernel:
        return Equivariant(RBF(), pilot.group)

    def particles(kernel: Callable[[Pilot], AbstractKernel], num: int):
        return lambda: svgd(config, assembly.reading, kernel, num)

    many = max(few, min(few * model.num_copies, config.most_particles))
    found = {
        "tempering": (lambda: tempering(config, assembly.reading), _TEMPERING),
        "smc": (lambda: annealed(config, assembly.reading), _SMC),
    }
    if has_blackjax():
        found["nuts"] = (lambda: nuts(config, assembly.reading), _NUTS)
    return found | {
        "e-svgd": (particles(equivariant, few), _E_SVGD),
        "svgd": (particles(plain, few), _SVGD),
        "svgd-many": (particles(plain, many), _MANY),
    }


_TEMPERING = (
    "The default: parallel tempering of MALA from a density that is normal in "
    "standardized coordinates. Its chains go through all copies of a mode."
)
_SMC = "Annealed sequential Monte Carlo of MALA along the same path."
_NUTS = (
    "BlackJAX's NUTS with its own warm-up, alone. Where its chains stay in the copies "
    "near their start, marginals of a component as it is labelled are wrong; where "
    "they stay in modes that are no copies, their effective number is about that of "
    "the chains, and their cost is a lower bound. Present where BlackJAX is installed."
)
_E_SVGD = (
    "SVGD with the equivariant kernel and Langevin noise: particles repel across all "
    "copies. Expanded, each stands for its whole orbit."
)
_SVGD = "Vanilla SVGD with the same noise, of as many particles."
_MANY = (
    "The same with as many particles as all copies together, or as `most_particles` "
    "allows."
)
