"""Few equivariant particles against many plain ones (paper, figure sample)."""

import dataclasses
from collections.abc import Mapping

import jax.random as jr
import numpy as np
import optax

from equistein.experiments._annealed import annealed_svgd
from equistein.experiments._base import Experiment, Stage
from equistein.experiments._shells import radial_measure, start_in_box
from equistein.experiments._toy import measured, sample_each, seed_keys
from equistein.features import Radius
from equistein.kernels import Pullback, RBF
from equistein.plotting import boxes, curves
from equistein.runs import FLOOR, Outcome
from equistein.samplers import SVGD
from equistein.targets import Shells


@dataclasses.dataclass(frozen=True, kw_only=True)
class SampleEfficiencyConfig:
    """Settings of `sample-efficiency`.

    Attributes:
        num_seeds: The number of seeds, counted up from the run's seed.
        num_particles: The number of equivariant particles.
        multiples: How many times as many particles vanilla SVGD has.
        num_steps: The number of SVGD steps.
        record_every: The number of steps between two points of the curves.
        step: The step size of vanilla SVGD.
        bandwidth: The bandwidth of vanilla SVGD.
        radial_step: The step size of `equivariant`.
        radial_bandwidth: The bandwidth in the radius of `equivariant`.
        annealed_step: The step length of `annealed`.
        annealed_bandwidth: The bandwidth in the radius of `annealed`.
    """

    num_seeds: int = 5
    num_particles: int = 20
    multiples: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    num_steps: int = 5_000
    record_every: int = 10
    step: float = 0.05
    bandwidth: float = 0.1
    radial_step: float = 0.2
    radial_bandwidth: float = 0.3
    annealed_step: float = 0.15
    annealed_bandwidth: float = 0.5


def stages(config: SampleEfficiencyConfig, seed: int) -> dict[str, Stage]:
    target = Shells((4.0, 8.0), 0.5, 2)
    exact = target.sample(jr.key(0), 20_000)
    measure = radial_measure(target, (exact**2).sum(-1) ** 0.5)

    def sampled(sampler: SVGD, num: int) -> Stage:
        def stage() -> Outcome:
            outcome = sample_each(
                sampler,
                target.log_density,
                [start_in_box(k, num, 2) for k in seed_keys(seed, config.num_seeds, 0)],
                seed_keys(seed, config.num_seeds, 1),
                measure,
                num_steps=config.num_steps,
                record_every=config.record_every,
            )
            curve, steps = outcome.history["log_density"], outcome.history["step"]
            at_100 = curve[:, np.argmin(np.abs(steps[0] - 100))]
            outcome.metrics["gap_after_100_steps"] = np.abs(at_100 - curve[:, -1])
            return outcome

        return stage

    def floor() -> Outcome:
        keys = seed_keys(seed, 100, 2)
        draws = [target.sample(key, config.num_particles) for key in keys]
        return measured(draws, measure)

    vanilla = SVGD(RBF(config.bandwidth), optax.sgd(config.step))
    radial = Pullback(RBF(config.radial_bandwidth), Radius())
    hot = Pullback(RBF(config.annealed_bandwidth), Radius())
    num = config.num_particles
    return {
        f"equivariant-{num}": sampled(SVGD(radial, optax.sgd(config.radial_step)), num),
        f"annealed-{num}": sampled(
            annealed_svgd(hot, config.num_steps, config.annealed_step), num
        ),
        **{
            f"vanilla-{num * multiple}": sampled(vanilla, num * multiple)
            for multiple in config.multiples
        },
        FLOOR: floor,
    }


def draw(config: SampleEfficiencyConfig, outcomes: Mapping[str, Outcome]) -> dict:
    del config
    runs = {name: out for name, out in outcomes.items() if name != FLOOR}
    series = {
        name: (out.history["step"][0], out.history["log_density"])
        for name, out in runs.items()
    }
    floor = outcomes.get(FLOOR)
    exact = float(floor.metrics["mean_log_likelihood"].mean()) if floor else None
    distance = float(floor.metrics["w1_radius"].mean()) if floor else None
    return {
        "log-likelihood": curves(
            series, "mean log-likelihood", exact=exact, log_x=True, limits=(-8.0, 0.0)
        ),
        "wasserstein": boxes(
            {name: out.metrics["w1_radius"] for name, out in runs.items()},
            "Wasserstein-1 of the radii to the exact law",
            exact=distance,
            exact_label="as many exact samples as `equivariant` has",
        ),
    }


SAMPLE_EFFICIENCY = Experiment(
    name="sample-efficiency",
    figure="figure sample, section 3",
    summary="20 equivariant particles against up to 640 plain ones on two circles",
    presets={
        "smoke": SampleEfficiencyConfig(
            num_seeds=2, num_particles=8, multiples=(1, 2), num_steps=120
        ),
        "quick": SampleEfficiencyConfig(),
        "paper": SampleEfficiencyConfig(num_seeds=10),
    },
    stages=stages,
    draw=draw,
    notes={
        "equivariant-20": "Converges within 100 steps; the weights of the rings are "
        "those of the start.",
        "annealed-20": "Its weights do not depend on the start.",
        "vanilla-640": "A log-likelihood above the exact line is no merit: the "
        "particles have collapsed towards the crests of the rings.",
    },
    captions={
        "log-likelihood": "Mean log-likelihood against the step: mean and range over "
        "the seeds. Collapsed particles lie above the exact line.",
        "wasserstein": "How far the radii are from their exact law at the end, a point "
        "a seed.",
    },
)
