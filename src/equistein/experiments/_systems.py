"""Sampling a particle system from its energy: what both systems share."""

import dataclasses
import importlib.util
import time
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from equistein._types import Key, Particles, Scalar
from equistein.data import cached_array, published_clouds
from equistein.experiments._base import FLOOR, Outcome, Stage
from equistein.experiments._toy import seed_keys
from equistein.features import PairHistogram
from equistein.kernels import Moments, Pullback, RBF
from equistein.metrics import (
    geometric_wasserstein,
    pair_distances,
    shares,
    total_variation,
    virial,
    wasserstein_1d,
)
from equistein.plotting import bars, configurations, curves, laws
from equistein.samplers import (
    AbstractSampler,
    Geometric,
    herd,
    Langevin,
    MALA,
    SVGD,
    thermal,
    vector_adam,
)
from equistein.targets import AbstractParticleSystem, Minima

_REFERENCE = 1  # the version of what makes reference samples
_SNAPSHOTS = 20  # of the correcting chains, to herd from
_FINE_BINS = 100  # of the distances that herding looks at
_WARM_UP = 100  # evaluations of MALA before NUTS


@dataclasses.dataclass(frozen=True, kw_only=True)
class SystemConfig:
    """Settings of `dw4-sampling` and `lj13-sampling`.

    Attributes:
        num_seeds: The number of seeds, counted up from the run's seed.
        num_particles: The number of particles.
        num_steps: Evaluations of the score, a particle, in the final run.
        budgets: Smaller numbers of evaluations, for the curves.
        pair_budget: The largest number for the samplers that sum over all pairs.
        num_reference: The number of reference samples.
        num_geometric: The number of clouds in the geometric distance.
        stein_step: The step of `equivariant` along the Stein force.
        noise: The Langevin step of `equivariant`, and of `langevin` before it cools.
        start: The first inverse temperature.
        warm: The share of the steps that anneal.
        corrected: The share of the evaluations that `equivariant` ends with MALA.
        num_bins: The centres of its features, a smooth histogram of distances.
        bin_width: The width of a bin.
        reach: The last centre.
        quiet_step: The step length of `quiet` and `vanilla`.
        mala_step: The first step of MALA.
        nuts_step: The step of NUTS.
        score_clip: The longest score.
    """

    num_seeds: int = 5
    num_particles: int = 1_000
    num_steps: int = 5_000
    budgets: tuple[int, ...] = (50, 100, 200, 400, 800, 1_600)
    pair_budget: int = 1_600
    num_reference: int = 40_000
    num_geometric: int = 1_000
    stein_step: float = 0.02
    noise: float = 0.01
    start: float = 0.1
    warm: float = 0.9
    corrected: float = 0.25
    num_bins: int = 8
    bin_width: float = 1.0
    reach: float = 8.0
    quiet_step: float = 0.05
    mala_step: float = 0.01
    nuts_step: float = 0.15
    score_clip: float = 100.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class System:
    """A particle system and what it is compared with.

    Attributes:
        name: The name of its files.
        target: Its density.
        limits: The range of distances in the total variation.
        minima: Its minima, where they are few enough to be told apart.
        published: The path of published samples in the data folder.
    """

    name: str
    target: AbstractParticleSystem
    limits: tuple[float, float]
    minima: Callable[[], Minima] | None = None
    published: str | None = None


Sampler = Callable[[Key, Particles, Int[Array, ""]], Particles]


def reference(system: System, num: int, part: int) -> Float[Array, "n *shape"]:
    """Return reference samples by parallel tempering, from the cache if they are there.

    Args:
        system: The system.
        num: How many.
        part: Which independent set: 0 to compare with, 1 for the floor.
    """
    target = system.target
    settings = {
        "version": _REFERENCE,
        "target": repr(target),
        "num": num,
        "part": part,
    }
    shape = (num, target.num_particles, target.dim)
    return jnp.asarray(
        cached_array(
            f"{system.name}-reference", settings, shape,
            lambda: np.asarray(target.sample(jr.key(1_000 + part), num)),
        )
    )  # fmt: skip


def samplers(config: SystemConfig, system: System) -> dict[str, tuple[Sampler, int]]:
    """Return each sampler as a function of key, start and number of evaluations.

    With each comes the largest number of evaluations it is tried with.
    """
    target = system.target
    project, species = target.group.project, target.group.species
    features = PairHistogram(
        species, reach=config.reach, num_centers=config.num_bins, width=config.bin_width
    )

    def annealed(num_steps):
        """Return the schedule of the temperature, and that of a squared length."""
        annealing = Geometric(config.warm * num_steps, start=config.start)
        return annealing, lambda size, last: thermal(
            size, annealing, num_steps, power=1.0, last=last
        )

    def flowed(key, start, num_steps):
        """Return E-SVGD's particles, and what is left of the evaluations."""
        flowing = (num_steps * (1 - config.corrected)).astype(int)
        annealing, rate = annealed(flowing)
        flow = SVGD(
            Moments(features), optax.sgd(rate(config.stein_step, 1.0)),
            annealing=annealing, langevin=rate(config.noise, 1.0),
            score_clip=config.score_clip,
        )  # fmt: skip
        return advance(key, flow, target, start, flowing), num_steps - flowing

    def corrected(key, particles, num_steps):
        """Return the states of chains that correct particles, in the second half."""
        half = num_steps // 2
        chains = MALA(
            config.mala_step, num_adapt=half, score_clip=config.score_clip,
            project=project,
        )  # fmt: skip
        state = advance_state(key, chains, target, chains.init(particles), half)

        def snapshot(state, index):
            after = half + (num_steps - half) * (index + 1) // _SNAPSHOTS
            state = advance_state(key, chains, target, state, after)
            return state, state.particles

        return jax.lax.scan(snapshot, state, jnp.arange(_SNAPSHOTS))[1]

    def equivariant(key, start, num_steps):
        flow_key, chain_key = jr.split(key)
        particles, left = flowed(flow_key, start, num_steps)
        return corrected(chain_key, particles, left)[-1]

    def herded(key, start, num_steps):
        flow_key, chain_key = jr.split(key)
        particles, left = flowed(flow_key, start, num_steps)
        snapshots = corrected(chain_key, particles, left)
        pool = snapshots.reshape(-1, *start.shape[1:])
        levels = jax.vmap(target.log_density)(pool)
        return pool[herd(fine_features(system, pool), len(start), levels)]

    def langevin(key, start, num_steps):
        annealing, rate = annealed(num_steps)
        chains = Langevin(
            rate(config.noise, 0.05), annealing=annealing,
            score_clip=config.score_clip, project=project,
        )  # fmt: skip
        return advance(key, chains, target, start, num_steps)

    def mala(key, start, num_steps):
        annealing, _ = annealed(num_steps)
        chains = MALA(
            config.mala_step, num_adapt=(config.warm * num_steps).astype(int),
            annealing=annealing, score_clip=config.score_clip, project=project,
        )  # fmt: skip
        return advance(key, chains, target, start, num_steps)

    def deterministic(kernel):
        def sampler(key, start, num_steps):
            annealing = Geometric(config.warm * num_steps, start=config.start)
            rate = thermal(config.quiet_step, annealing, num_steps)
            flow = SVGD(
                kernel, vector_adam(rate, b1=0.0, b2=0.9), annealing=annealing,
                score_clip=config.score_clip, project=project,
            )  # fmt: skip
            return advance(key, flow, target, start, num_steps)

        return sampler

    return {
        "equivariant": (equivariant, config.num_steps),
        "herded": (herded, config.num_steps),
        "quiet": (deterministic(Pullback(RBF(), target.features)), config.pair_budget),
        "vanilla": (deterministic(RBF()), config.pair_budget),
        "langevin": (langevin, config.num_steps),
        "mala": (mala, config.num_steps),
    }


def fine_features(system: System, pool: Particles) -> Float[Array, "n feature"]:
    """Return what herding looks at: the distances, in fine bins."""
    low, high = system.limits
    num = round(_FINE_BINS * high / (high - low)) + 1
    histogram = PairHistogram(system.target.group.species, reach=high, num_centers=num)
    return jax.vmap(histogram)(pool)


def advance(
    key: Key,
    sampler: AbstractSampler,
    target: AbstractParticleSystem,
    start: Particles,
    num_steps: Int[Array, ""],
) -> Particles:
    """Take a number of steps that the compiler need not know."""
    state = advance_state(key, sampler, target, sampler.init(start), num_steps)
    return state.particles


def advance_state(
    key: Key,
    sampler: AbstractSampler,
    target: AbstractParticleSystem,
    state: Any,
    until: Int[Array, ""],
) -> Any:
    """Step on to the step of this number."""

    def step(i, state):
        return sampler.step(jr.fold_in(key, i), state, target.log_density)[0]

    return jax.lax.fori_loop(state.step, until.astype(state.step.dtype), step, state)


def nuts_curve(
    config: SystemConfig, system: System, key: Key, start: Particles
) -> list[tuple[float, Particles]]:
    """Return the particles of BlackJAX's NUTS after doubling numbers of transitions.

    Each comes with the evaluations a particle it took on average. NUTS does not come
    down from overlaps, so it starts where MALA is after 100 evaluations, which count.
    Its chains live in all coordinates, with the centre of mass held by a spring.
    """
    import blackjax

    mala, _ = samplers(config, system)["mala"]
    warm_up = min(_WARM_UP, config.num_steps // 4)
    start = eqx.filter_jit(mala)(
        jr.fold_in(key, 1_000_000), start, jnp.asarray(warm_up)
    )

    def log_density(point):
        middle = jnp.mean(point, axis=0, keepdims=True)
        return system.target.log_density(point) - jnp.sum(middle**2) / 2

    point = start[0]
    algorithm: Any = blackjax.nuts(
        log_density, config.nuts_step, jnp.ones(point.size, point.dtype),
        max_num_doublings=6,
    )  # fmt: skip

    step: Any = jax.vmap(algorithm.step)
    init: Any = jax.vmap(algorithm.init)

    @jax.jit
    def transitions(key, states, num):
        def one(i, carry):
            states, spent = carry
            keys = jr.split(jr.fold_in(key, i), len(start))
            states, info = step(keys, states)
            spent = spent + jnp.mean(info.num_integration_steps.astype(point.dtype))
            return states, spent

        return jax.lax.fori_loop(0, num, one, (states, jnp.zeros((), point.dtype)))

    states, spent, done, snapshots = init(start), float(warm_up), 0, []
    while spent < config.num_steps / 2:
        more = max(done, 2)
        states, cost = transitions(jr.fold_in(key, done), states, jnp.asarray(more))
        done, spent = done + more, spent + float(cost)
        points = jax.vmap(system.target.group.project)(states.position)
        snapshots.append((spent, points))
    return snapshots


def quality(
    system: System, exact: Float[Array, "exact *shape"], points: Particles
) -> dict[str, Scalar]:
    """Return the two distances to exact samples that the curves show."""
    energy = jax.vmap(lambda x: -system.target.log_density(x))
    gap = wasserstein_1d(energy(points), energy(exact), order=2)
    distances = pair_distances(points), pair_distances(exact)
    return {
        "energy_w2": gap,
        "distance_tv": total_variation(*distances, system.limits),
    }


def measure(
    system: System, exact: Float[Array, "exact *shape"], points: Particles
) -> dict[str, float]:
    """Return them as numbers."""
    numbers = _compiled_quality(system, exact, points)
    return {name: float(value) for name, value in numbers.items()}


@eqx.filter_jit
def _compiled_quality(system, exact, points):
    return quality(system, exact, points)


def measure_all(
    config: SystemConfig,
    system: System,
    exact: Float[Array, "n *shape"],
    points: Particles,
) -> dict[str, float]:
    """Return all metrics of some particles."""
    target = system.target
    values = jax.vmap(lambda x: -target.log_density(x))(points)
    few = min(config.num_geometric, len(points), len(exact))
    numbers = measure(system, exact, points) | {
        "geometric_w2": geometric_wasserstein(points[:few], exact[:few], target.group),
        "mean_energy": float(jnp.mean(values)),
        "virial": float(virial(target.log_density, points)),
    }
    if system.minima is not None:
        minima = system.minima()
        held = shares(target.states(points, minima), len(minima.energies))
        numbers |= {f"state_{i + 1}": float(share) for i, share in enumerate(held)}
    published = _published(system)
    if published is not None:
        against = measure(system, published, points)
        numbers["energy_w2_published"] = against["energy_w2"]
        numbers["geometric_w2_published"] = geometric_wasserstein(
            points[:few], published[:few], target.group
        )
    return numbers


def _published(system: System) -> Float[Array, "n *shape"] | None:
    if system.published is None:
        return None
    clouds = published_clouds(system.published, system.target.dim)
    return None if clouds is None else jnp.asarray(clouds)


def stages(config: SystemConfig, system: System, seed: int) -> dict[str, Stage]:
    """Return what makes the outcome of each sampler."""
    target = system.target
    starts = lambda: [
        target.start(key, config.num_particles)
        for key in seed_keys(seed, config.num_seeds, 0)
    ]
    keys = seed_keys(seed, config.num_seeds, 1)

    def exact() -> Float[Array, "n *shape"]:
        return reference(system, config.num_reference, 0)

    def sampled(sampler: Sampler, largest: int) -> Stage:
        def stage() -> Outcome:
            # One compilation serves all numbers of steps.
            move = eqx.filter_jit(sampler)
            budgets = [b for b in (*config.budgets, config.num_steps) if b <= largest]
            runs, curve = [], []
            for key, start in zip(keys, starts(), strict=True):
                snapshots = [timed(move, key, start, budget) for budget in budgets]
                runs.append(snapshots[-1])
                curve.append(
                    [measure(system, exact(), points) for points, _ in snapshots]
                )
            at = np.tile(np.array(budgets, float), (len(runs), 1))
            return _outcome(config, system, exact(), runs, at, curve)

        return stage

    def timed(move, key, start, budget) -> tuple[Particles, dict[str, Any]]:
        began = time.perf_counter()
        points = jax.block_until_ready(move(key, start, jnp.asarray(budget)))
        seconds = time.perf_counter() - began
        return points, {"evaluations": budget, "seconds": seconds}

    def nuts() -> Outcome:
        runs, curve, at = [], [], []
        for key, start in zip(keys, starts(), strict=True):
            began = time.perf_counter()
            snapshots = nuts_curve(config, system, key, start)
            seconds = time.perf_counter() - began
            at.append([spent for spent, _ in snapshots])
            curve.append([measure(system, exact(), points) for _, points in snapshots])
            spent, points = snapshots[-1]
            runs.append((points, {"evaluations": spent, "seconds": seconds}))
        # Seeds differ in their evaluations by little; the curve takes the mean.
        length = min(map(len, curve))
        mean = np.mean([row[:length] for row in at], axis=0)
        curve = [rows[:length] for rows in curve]
        return _outcome(
            config, system, exact(), runs, np.tile(mean, (len(runs), 1)), curve
        )

    def floor() -> Outcome:
        num_sets = max(config.num_seeds, 2)
        draws = reference(system, num_sets * config.num_particles, 1)
        sets = jnp.split(draws, num_sets)
        runs = [(points, {}) for points in sets]
        return _outcome(config, system, exact(), runs)

    parts = {
        name: sampled(sampler, largest)
        for name, (sampler, largest) in samplers(config, system).items()
    }
    if importlib.util.find_spec("blackjax") is not None:
        parts["nuts"] = nuts
    return parts | {FLOOR: floor}


def _outcome(
    config: SystemConfig,
    system: System,
    exact: Float[Array, "n *shape"],
    runs: list[tuple[Particles, dict[str, Any]]],
    evaluations: np.ndarray | None = None,
    curve: list[list[dict[str, float]]] | None = None,
) -> Outcome:
    rows = [
        measure_all(config, system, exact, points) | extra for points, extra in runs
    ]
    history = {}
    if evaluations is not None and curve:
        history = {"step": evaluations} | {
            name: np.array([[row[name] for row in rows] for rows in curve])
            for name in curve[0][0]
        }
    samples = np.concatenate([np.asarray(points) for points, _ in runs])
    energy = jax.vmap(lambda x: -system.target.log_density(x))
    arrays = {
        "energies": np.asarray(energy(jnp.asarray(samples))),
        "distances": np.asarray(pair_distances(jnp.asarray(samples))).ravel()[::10],
    }
    return Outcome(
        metrics={name: np.array([row[name] for row in rows]) for name in rows[0]},
        samples=samples,
        history=history,
        arrays=arrays,
    )


def compare(config: SystemConfig, outcomes: Mapping[str, Outcome]) -> dict:
    """Return the share of MALA's evaluations after which `equivariant` is as good.

    As good as MALA at its largest number of evaluations, in the energy distance, with
    a tenth for chance; infinite where it never is.
    """
    if not {"equivariant", "mala"} <= set(outcomes):
        return {}
    ours, theirs = outcomes["equivariant"], outcomes["mala"]
    good = 1.1 * theirs.history["energy_w2"].mean(axis=0)
    curve = ours.history["energy_w2"].mean(axis=0)
    spent = ours.history["step"][0]
    at = theirs.history["step"][0]
    ratios = np.array(
        [
            np.min(np.where(curve <= level, spent, np.inf)) / budget
            for level, budget in zip(good, at, strict=True)
        ]
    )
    finite = ratios[np.isfinite(ratios)]
    worst = float(np.max(ratios)) if len(finite) else np.inf
    ones = np.ones(config.num_seeds)
    return {"equivariant": {"evaluations_over_mala": worst * ones}}


def draw(
    config: SystemConfig,
    outcomes: Mapping[str, Outcome],
    system: System,
    energies: tuple[float, float],
) -> dict:
    """Return the figures."""
    runs = {name: out for name, out in outcomes.items() if name != FLOOR}
    floor = outcomes.get(FLOOR)
    quality = {
        "energy_w2": "Wasserstein-2 of the energies",
        "distance_tv": "total variation of the distances",
    }
    figures = {}
    for name, label in quality.items():
        level = float(floor.metrics[name].mean()) if floor else None
        figures[name.replace("_", "-")] = curves(
            {run: (out.history["step"][0], out.history[name])
             for run, out in runs.items()},
            label, exact=level, exact_label="as many exact samples",
            log_x=True, log_y=True, x_label="score evaluations a particle",
            limits=(0.5 * level, 100 * level) if level else None,
        )  # fmt: skip
    order = ([FLOOR] if floor else []) + list(runs)
    shown = {name: outcomes[name] for name in order}
    figures["energies"] = laws(
        {name: out.arrays["energies"] for name, out in shown.items()},
        _density(floor.arrays["energies"], energies) if floor else None,
        "energy", limits=energies, bins=64,
    )  # fmt: skip
    figures["distances"] = laws(
        {name: out.arrays["distances"] for name, out in shown.items()},
        _density(floor.arrays["distances"], system.limits) if floor else None,
        "distance of two particles", limits=system.limits, bins=80,
    )  # fmt: skip
    reach = float(np.quantile(np.abs(next(iter(shown.values())).samples), 0.999))
    figures["configurations"] = configurations(
        {name: out.samples[:8] for name, out in shown.items()}, 1.2 * reach
    )
    if system.minima is not None:
        names = [name for name in shown[order[0]].metrics if name.startswith("state_")]
        figures["states"] = bars(
            {
                name: np.array([out.metrics[state].mean() for state in names])
                for name, out in shown.items()
            },
            [name.replace("_", " ") for name in names],
            "share of the samples",
        )
    return figures


def _density(
    values: np.ndarray, limits: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    heights, edges = np.histogram(values, np.linspace(*limits, 65))
    width = edges[1] - edges[0]
    return (edges[1:] + edges[:-1]) / 2, heights / (values.size * width)
