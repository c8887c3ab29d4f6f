"""Few equivariant particles against many plain ones (paper, figure sample)."""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import optax

from equistein._types import Particles
from equistein.experiments.engine._checks import AbstractConfig
from equistein.experiments.engine._experiment import Entry, Experiment, Stage, Trial
from equistein.experiments.engine._figures import (
    Boxes,
    Curves,
    level_of_floor,
)
from equistein.experiments.toys._sampling import annealed_svgd, floor_of, sampled
from equistein.experiments.toys._shells import radial_measure, start_in_box
from equistein.features import Radius
from equistein.kernels import Pullback, RBF
from equistein.runs import Outcome
from equistein.samplers import SVGD
from equistein.targets import Shells


@dataclasses.dataclass(frozen=True, kw_only=True)
class SampleEfficiencyConfig(AbstractConfig):
    """Settings of `sample-efficiency`.

    Attributes:
        num_particles: The number of equivariant particles.
        multiples: How many times as many particles vanilla SVGD has.
        num_steps: The number of SVGD steps.
        record_every: The number of steps between two points of the curves.
        step_size: The step size of vanilla SVGD.
        bandwidth: The bandwidth of vanilla SVGD.
        radial_step_size: The step size of `equivariant`.
        radial_bandwidth: The bandwidth in the radius of `equivariant`.
        annealed_step_size: The step size of `annealed`, at the target.
        annealed_bandwidth: The bandwidth in the radius of `annealed`.
    """

    num_particles: int = 20
    multiples: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    num_steps: int = 5_000
    record_every: int = 10
    step_size: float = 0.05
    bandwidth: float = 0.1
    radial_step_size: float = 0.2
    radial_bandwidth: float = 0.3
    annealed_step_size: float = 0.15
    annealed_bandwidth: float = 0.5

    empty: ClassVar[Sequence[str]] = ("multiples",)


def entries(config: SampleEfficiencyConfig) -> list[Entry]:
    target = Shells((4.0, 8.0), 0.5, 2)
    measure = radial_measure(target)
    num = config.num_particles

    def stage_of(sampler: SVGD, size: int) -> Stage:
        def start(key) -> Particles:
            return start_in_box(key, size, 2)

        plain = sampled(
            sampler, target.log_density, start, measure,
            num_steps=config.num_steps, record_every=config.record_every,
        )  # fmt: skip

        def stage(trial: Trial) -> Outcome:
            outcome = plain(trial)
            curve, steps = outcome.history["log_density"], outcome.history["step"]
            at_100 = curve[:, np.argmin(np.abs(steps[0] - 100))]
            outcome.metrics["gap_after_100_steps"] = np.abs(at_100 - curve[:, -1])
            return outcome

        return stage

    radial = Pullback(RBF(config.radial_bandwidth), Radius())
    hot = Pullback(RBF(config.annealed_bandwidth), Radius())
    vanilla = SVGD(RBF(config.bandwidth), optax.sgd(config.step_size))
    plenty = (
        "A log-likelihood above the exact line is no merit: the particles have "
        "collapsed towards the crests of the rings."
    )
    return [
        Entry(
            name=f"equivariant-{num}",
            stage=stage_of(SVGD(radial, optax.sgd(config.radial_step_size)), num),
            note="Converges within 100 steps; the weights of the rings are those of "
            "the start.",
        ),
        Entry(
            name=f"annealed-{num}",
            stage=stage_of(
                annealed_svgd(hot, config.num_steps, config.annealed_step_size), num
            ),
            note="Its weights do not depend on the start.",
        ),
        *(
            Entry(
                name=f"vanilla-{num * multiple}",
                stage=stage_of(vanilla, num * multiple),
                note=plenty if multiple == max(config.multiples) else "",
            )
            for multiple in config.multiples
        ),
        floor_of(lambda key: target.sample(key, num), measure),
    ]


_FIGURES = (
    Curves(
        "log-likelihood",
        "log_density",
        "mean log-likelihood",
        level=level_of_floor("mean_log_likelihood"),
        log_x=True,
        limits=(-8.0, 0.0),
        caption="Mean log-likelihood against the step: mean and range over the "
        "seeds. Collapsed particles lie above the exact line.",
    ),
    Boxes(
        "wasserstein",
        "w1_radius",
        "Wasserstein-1 of the radii",
        caption="How far the distribution of the radii is from the exact one at "
        "the end, a point a seed. The line is that of as many exact samples as "
        "`equivariant` has particles.",
    ),
)


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
    entries=entries,
    figures=_FIGURES,
)
