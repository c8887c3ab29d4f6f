"""The samplers of a posterior, as entries of an experiment."""

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import jax.random as jr
import numpy as np

from equistein._types import Key, Particles
from equistein.experiments.engine._checks import has_blackjax
from equistein.experiments.engine._experiment import Entry, Stage, Trial
from equistein.experiments.engine._once import OnceProperty
from equistein.experiments.posteriors._config import PosteriorConfig
from equistein.experiments.posteriors._metrics import Reading, Yardstick
from equistein.experiments.posteriors._model import AbstractModel
from equistein.experiments.posteriors._samplers import (
    annealed,
    Found,
    nuts,
    run_default,
    Sampling,
    svgd,
    tempering,
    thinned,
)
from equistein.kernels import (
    AbstractKernel,
    AbstractRadialKernel,
    Equivariant,
    PeriodicRBF,
    RBF,
)
from equistein.posteriors import Pilot
from equistein.runs import FLOOR, Outcome, seed_outcome

_NUM_FLOORS = 10
_FAR = 1_000  # seeds of the reference, far from those of the trials

Extra = Callable[[Trial, str, Found], dict[str, Any]]
"""From a trial, a sampler's name and what it found, further arrays of its outcome."""


class Assembly:
    """What the samplers of one model share: coordinates, reference and floors."""

    def __init__(self, config: PosteriorConfig, model: AbstractModel):
        self.config = config
        self.model = model
        self.floors: dict[int, dict[str, float]] = {}

    @OnceProperty
    def reading(self) -> Reading:
        return Reading(self.model, self.model.posterior())

    @OnceProperty
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

    @OnceProperty
    def yardstick(self) -> Yardstick:
        posterior = self.reading.posterior
        pilot = posterior.pilot(jr.key(_FAR), check=False)
        wide = pilot.coordinates.width * pilot.reference.width
        width = jnp.where(jnp.isfinite(pilot.reference.period), 1.0, wide)
        return Yardstick(
            posterior, width, self.references[0], self.config.most_elements
        )

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
    model: AbstractModel,
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
    config: PosteriorConfig, model: AbstractModel, assembly: Assembly
) -> dict[str, tuple[Callable[[], Sampling], str]]:
    """Return what makes each sampler, and the sentence that its numbers need."""
    few = config.num_particles

    def plain(pilot: Pilot) -> AbstractRadialKernel:
        periodic = pilot.periodic
        return RBF() if periodic is None else PeriodicRBF(periodic=periodic)

    def equivariant(pilot: Pilot) -> AbstractKernel:
        return Equivariant(plain(pilot), pilot.group)

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
