"""The samplers that are compared on particle systems, over budgets of evaluations."""

import dataclasses
import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from jaxtyping import Array, Int, PyTree

from equistein.features import PairHistogram
from equistein.kernels import Moments, Pullback, RBF
from equistein.samplers import (
    AbstractMarkovChains,
    AbstractSampler,
    advance,
    annealed_svgd,
    AnnealedSMC,
    from_blackjax,
    Geometric,
    MALA,
    ParallelTempering,
    SVGD,
    thermal,
)
from experiments._engine import AbstractConfig, Key, Keys, Particles, Starts
from experiments._systems import System

_ANNEALED = 0.9  # of the evaluations
_CORRECTED = 0.25  # of those of `equivariant`, by MALA at the end
_NUM_BINS = 8  # of its smooth histogram of distances
_DESCENT = 100  # evaluations from which chains continue
_TRAJECTORY = 10  # steps of HMC and of microcanonical chains
_ACCEPTANCE = {"hmc": 0.65, "nuts": 0.8, "mclmc": 0.9}  # as their authors say
_ADAPTING = 100  # steps of tempering
_DOUBLINGS = 6  # of a tree of NUTS, at most
_POLISHING = 0.05  # of the evaluations
_RUNS, _MOVES, _ESS = 4, 4, 0.9  # of sequential Monte Carlo

Budget = Int[Array, ""]


ANNEALED = {
    "equivariant": "E-SVGD with the `Moments` kernel on a histogram of distances and "
    "Langevin noise, annealed; the last quarter of the evaluations is MALA, which "
    "takes the step's bias away. Its particles end as good as independent ones.",
    "quiet": "E-SVGD without noise: the kernel pulled back along sorted distances, "
    "annealed. Under-dispersed, and biased where distances tie.",
    "vanilla": "SVGD with the median rule, annealed: under-dispersed.",
    "mala": "Annealed Metropolis-adjusted Langevin chains with an adapted step size: "
    "the baseline to beat.",
}
"""The samplers that anneal over all evaluations, with a note."""

CHAINS = {
    "hmc": "BlackJAX's HMC with trajectories of a set number of steps; its warm-up "
    "finds the step size and masses. It starts where annealed MALA is after a few "
    "evaluations, which count, as do those of the warm-up.",
    "nuts": "BlackJAX's NUTS, likewise.",
    "mclmc": "BlackJAX's Metropolis-adjusted microcanonical chains, likewise.",
    "svgd-hmc": "HMC from where E-SVGD is.",
    "svgd-nuts": "NUTS from where E-SVGD is.",
    "svgd-mclmc": "Microcanonical chains from where E-SVGD is.",
    "hmc-svgd": "HMC, and the last twentieth of the evaluations are E-SVGD's without "
    "noise, which makes of samples particles that represent the density together.",
    "tempering": "Parallel tempering of a tenth as many ladders, each looked at ten "
    "times since the budget before; the evaluations of all temperatures count.",
    "svgd-tempering": "Tempering from where E-SVGD is.",
    "smc": "Annealed sequential Monte Carlo from a normal density as wide as the "
    "start: until it arrives, its particles are those of a hotter density.",
}
"""The samplers that continue from one budget to the next, with a note."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class SystemConfig(AbstractConfig):
    """Settings of `particle-sampling`.

    Attributes:
        system: What is sampled; other defaults depend on it.
        samplers: Which are run, by the names of the report.
        num_particles: The number of particles.
        num_steps: Evaluations of the score, a particle, in the final run.
        budgets: Smaller numbers of evaluations, for the curves.
        pair_budget: The largest number for the samplers that sum over all pairs.
        num_reference: The number of reference samples.
        num_geometric: The number of clouds in the geometric distance.
        stein_step: The step of `equivariant` along the Stein force; 0 for none.
        noise: The Langevin step of `equivariant`; 0 for none.
        start_inverse_temperature: The first inverse temperature, at most 1.
        bin_width: The width of a bin of the features of `equivariant`.
        reach: The center of the last bin.
        quiet_step_size: The step size of `quiet` and `vanilla`, in units of length.
        mala_step_size: The first step size of MALA.
        hamiltonian_step_size: The step size from which BlackJAX's warm-ups begin.
        num_warmup: The steps of these.
        inner: What moves the chains of tempering and of sequential Monte Carlo.
        num_ladders: The ladders of tempering; each is looked at many times.
        score_clip: The longest score.
    """

    system: Literal["dw4", "lj13", "lj55"] = "dw4"
    samplers: tuple[str, ...] = (
        *("equivariant", "quiet", "vanilla", "mala"),
        *("hmc", "nuts", "mclmc", "tempering", "smc"),
    )
    num_particles: int = 1_000
    num_steps: int = 5_000
    budgets: tuple[int, ...] = (50, 100, 200, 400, 800, 1_600)
    pair_budget: int = 1_600
    num_reference: int = 40_000
    num_geometric: int = 1_000
    stein_step: float = 0.015
    noise: float = 0.01
    start_inverse_temperature: float = 0.1
    bin_width: float = 1.0
    reach: float = 8.0
    quiet_step_size: float = 0.05
    mala_step_size: float = 0.01
    hamiltonian_step_size: float = 0.15
    num_warmup: int = 300
    inner: Literal["mala", "hmc"] = "mala"
    num_ladders: int = 100
    score_clip: float = 100.0

    or_zero: ClassVar[Sequence[str]] = ("stein_step", "noise")
    fractions: ClassVar[Sequence[str]] = ("start_inverse_temperature",)
    words: ClassVar[Mapping[str, Collection[str]]] = {"samplers": ANNEALED | CHAINS}

    def __post_init__(self):
        """Raise `ValueError` for settings that do not go together."""
        super().__post_init__()
        if self.num_particles < 2:
            raise ValueError(
                f"`num_particles` must be at least 2, but got {self.num_particles!r}."
            )
        if self.pair_budget < min((*self.budgets, self.num_steps)):
            raise ValueError(
                "`pair_budget` must be at least the smallest of `budgets`, but got "
                f"{self.pair_budget!r}."
            )

    def looks(self, last: int) -> list[int]:
        """Return the numbers of evaluations to look at, up to the last."""
        return sorted({budget for budget in self.budgets if budget < last} | {last})


Snapshot = tuple[Particles, float]
"""Particles on the way, and the evaluations of the score that each of them took."""
Snapshots = Callable[[Keys, Starts], list[list[Snapshot]]]
"""From keys and starts, for each run the particles after more and more evaluations."""


@dataclasses.dataclass(frozen=True)
class Annealed:
    """Samplers as functions of a number of evaluations that need not be static.

    Attributes:
        config: The settings.
        system: What is sampled.
    """

    config: SystemConfig
    system: System

    def named(self, name: str) -> Callable[[Key, Particles, Budget], Particles]:
        """Return one of those that anneal over all evaluations, by its name."""
        if name == "equivariant":
            return self.equivariant
        return functools.partial(self.one_phase, name)

    def equivariant(self, key: Key, start: Particles, num_steps: Budget) -> Particles:
        """E-SVGD with noise, and MALA for the last part of the evaluations."""
        flow_key, chain_key = jr.split(key)
        flowing = (num_steps * (1 - _CORRECTED)).astype(int)
        particles, left = self.flowed(flow_key, start, flowing), num_steps - flowing
        chains = MALA(self.config.mala_step_size, num_adapt=left // 2, **self._shared)
        return self.after(chain_key, chains, particles, left)

    def one_phase(
        self, name: str, key: Key, start: Particles, num_steps: Budget
    ) -> Particles:
        """One of the samplers that only anneal."""
        config, annealing = self.config, self._annealing(num_steps)
        shared: dict[str, Any] = self._shared | {"annealing": annealing}
        adapted = (_ANNEALED * num_steps).astype(int)
        sorted_distances = Pullback(RBF(), self.system.target.features)
        svgd = lambda kernel: annealed_svgd(
            kernel, num_steps, config.quiet_step_size, **shared
        )
        samplers: dict[str, AbstractSampler] = {
            "quiet": svgd(sorted_distances),
            "vanilla": svgd(RBF()),
            "mala": MALA(config.mala_step_size, num_adapt=adapted, **shared),
        }
        return self.after(key, samplers[name], start, num_steps)

    def flowed(self, key: Key, start: Particles, num_steps: Budget) -> Particles:
        """E-SVGD with noise, which anneals over all evaluations."""
        config, annealing = self.config, self._annealing(num_steps)
        # Squared lengths, which follow the temperature.
        tempered = lambda step: thermal(step, annealing, num_steps, power=1.0, last=1.0)
        flow = SVGD(
            self.kernel,
            optax.sgd(tempered(config.stein_step)),
            annealing=annealing,
            langevin=tempered(config.noise),
            score_clip=config.score_clip,
        )
        return self.after(key, flow, start, num_steps)

    def polished(self, key: Key, particles: Particles, num_steps: Budget) -> Particles:
        """Return what E-SVGD without noise makes of particles that are samples."""
        config = self.config
        flow = SVGD(
            self.kernel, optax.sgd(config.stein_step), score_clip=config.score_clip
        )
        return self.after(key, flow, particles, num_steps)

    def after(
        self, key: Key, sampler: AbstractSampler, start: Particles, num_steps: Budget
    ) -> Particles:
        """Return where a sampler moves particles."""
        log_density = self.system.target.log_density
        state = sampler.init(start, log_density)
        return advance(key, sampler, log_density, state, num_steps).particles

    @property
    def kernel(self) -> Moments:
        """The kernel of E-SVGD, on a smooth histogram of distances."""
        config, species = self.config, self.system.target.group.species
        return Moments(
            PairHistogram(
                species, reach=config.reach, num_centers=_NUM_BINS,
                width=config.bin_width,
            )
        )  # fmt: skip

    @property
    def _shared(self) -> dict[str, Any]:
        project = self.system.target.group.project
        return {"score_clip": self.config.score_clip, "project": project}

    def _annealing(self, num_steps: Budget) -> Geometric:
        start = self.config.start_inverse_temperature
        return Geometric(_ANNEALED * num_steps, start=start)


def over_budgets(config: SystemConfig, system: System, name: str) -> Snapshots:
    """Return what runs one of `ANNEALED` again for each number of evaluations."""
    last = config.num_steps
    if name in ("quiet", "vanilla"):
        last = min(config.pair_budget, last)
    # One compilation serves all numbers of steps.
    move = _of_runs(Annealed(config, system).named(name))

    def curves(keys: Keys, starts: Starts) -> list[list[Snapshot]]:
        looks = [
            [(points, budget) for points in move(keys, starts, jnp.asarray(budget))]
            for budget in config.looks(last)
        ]
        return list(map(list, zip(*looks, strict=True)))

    return curves


def through_budgets(config: SystemConfig, system: System, name: str) -> Snapshots:
    """Return what runs one of `CHAINS`, and looks at it when each budget is spent.

    The particles are those of as many chains; of tempering, whose ladders are fewer,
    they are the cold ends at several moments since the budget before. Runs go side by
    side, and each stops by itself when it has spent a budget. `svgd-X` begins where
    E-SVGD is, and the last evaluations of each budget of `X-svgd` are those of E-SVGD
    without noise, on a copy of the particles.
    """
    num, kind = config.num_particles, kind_of(name)
    annealed, sampler = Annealed(config, system), _sampler(config, system, kind)
    density, polishes = system.target.log_density, name.endswith("-svgd")
    num_chains = min(config.num_ladders, num) if kind == "tempering" else num
    num_looks, per_particle = -(-num // num_chains), num_chains / num
    descent = 0 if kind == "smc" else min(_DESCENT, config.num_steps // 4)
    spent_before = descent * per_particle
    budgets = [b for b in config.looks(config.num_steps) if b > spent_before]
    descended = annealed.named("mala")
    if name.startswith("svgd-"):
        descended = annealed.flowed
    begun = _of_runs(lambda *start: sampler.init(descended(*start), density))
    until = _of_runs(functools.partial(_until, sampler, density))
    polished = _of_runs(annealed.polished)

    def curves(keys: Keys, starts: Starts) -> list[list[Snapshot]]:
        down_keys, keys = jnp.moveaxis(jax.vmap(jr.split)(keys), 1, 0)
        starts = starts[:, :num_chains]
        states = begun(down_keys, starts, jnp.asarray(descent))
        looks, before = [], spent_before
        for budget in budgets:
            polishing = round(_POLISHING * budget) if polishes else 0
            pool = []
            for moment in np.linspace(before, budget - polishing, num_looks + 1)[1:]:
                limit = jnp.asarray(round(moment / per_particle) - descent)
                states = until(keys, states, limit)
                pool.append(states.particles)
            points = jnp.concatenate(pool, axis=1)[:, :num]
            if polishing:
                points = polished(keys, points, jnp.asarray(polishing))
            spent = (descent + states.evaluations) * per_particle + polishing
            looks.append([(points[i], float(spent[i])) for i in range(len(keys))])
            before = budget
        return list(map(list, zip(*looks, strict=True)))

    return curves


def kind_of(name: str) -> str:
    """Return what continues through the budgets of a sampler."""
    return name.removeprefix("svgd-").removesuffix("-svgd")


def needs_blackjax(config: SystemConfig, name: str) -> bool:
    """Return whether BlackJAX moves the chains of a sampler."""
    return name in CHAINS and (kind_of(name) in _ACCEPTANCE or config.inner == "hmc")


def _of_runs(function: Callable) -> Callable:
    """Return a compiled function of keys, states of as many runs, and a budget."""
    of_runs = eqx.filter_vmap(function, in_axes=(0, eqx.if_array(0), None))
    return eqx.filter_jit(of_runs)


def _until(
    sampler: AbstractSampler,
    log_density: Callable,
    key: Key,
    state: PyTree,
    evaluations: Budget,
) -> PyTree:
    """Take steps until a chain took that many evaluations."""
    return jax.lax.while_loop(
        lambda state: state.evaluations < evaluations,
        lambda state: advance(key, sampler, log_density, state, state.step + 1),
        state,
    )


def _sampler(config: SystemConfig, system: System, kind: str) -> Any:
    """Return what moves chains; tempering and SMC adapt the steps of what they use."""
    target = system.target
    if kind in _ACCEPTANCE:
        return _blackjax(config, system, kind, config.num_warmup)
    inner: AbstractMarkovChains = MALA(
        config.mala_step_size, score_clip=config.score_clip,
        project=target.group.project,
    )  # fmt: skip
    if config.inner == "hmc":
        inner = _blackjax(config, system, "hmc", 0)
    if kind == "tempering":
        return ParallelTempering(
            inner, target.inverse_temperatures, num_adapt=_ADAPTING
        )
    runs = _RUNS if config.num_particles % _RUNS == 0 else 1
    return AnnealedSMC(inner, num_runs=runs, num_moves=_MOVES, ess_fraction=_ESS)


def _blackjax(
    config: SystemConfig, system: System, kind: str, num_warmup: int
) -> AbstractMarkovChains:
    import blackjax

    algorithm, options = {
        "hmc": (blackjax.hmc, {"num_integration_steps": _TRAJECTORY}),
        "nuts": (blackjax.nuts, {"max_num_doublings": _DOUBLINGS}),
        "mclmc": (
            blackjax.adjusted_mclmc,
            {"integration_steps_params": (_TRAJECTORY,)},
        ),
    }[kind]
    return from_blackjax(
        algorithm, num_warmup=num_warmup, step_size=config.hamiltonian_step_size,
        acceptance=_ACCEPTANCE[kind], project=system.target.group.project, **options,
    )  # fmt: skip
