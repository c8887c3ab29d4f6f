"""Few equivariant particles against many plain ones (paper, figure sample)."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import optax

from equistein.experiments.engine._experiment import Entry, Experiment
from equistein.experiments.engine._figures import Boxes, Curves
from equistein.experiments.engine._levels import level_of_floor
from equistein.experiments.toys._sampling import annealed_svgd, ToyConfig
from equistein.experiments.toys._shells import radial_toy
from equistein.features import Radius
from equistein.kernels import Pullback, RBF
from equistein.runs import Outcome
from equistein.samplers import SVGD
from equistein.targets import Shells


@dataclasses.dataclass(frozen=True, kw_only=True)
class SampleEfficiencyConfig(ToyConfig):
    """Settings of `sample-efficiency`; step size and bandwidth are those of `vanilla`.

    Attributes:
        multiples: How many times as many particles vanilla SVGD has.
        record_every: The number of steps between two points of the curves.
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
    num, radius = config.num_particles, Radius()
    radial = Pullback(RBF(config.radial_bandwidth), radius)
    hot = Pullback(RBF(config.annealed_bandwidth), radius)
    plenty = (
        "A log-likelihood above the exact line is no merit: the particles have "
        "collapsed towards the crests of the rings."
    )
    vanilla = SVGD(RBF(config.bandwidth), optax.sgd(config.step_size))
    sizes = {f"vanilla-{num * many}": num * many for many in config.multiples}
    samplers = {
        f"equivariant-{num}": (
            SVGD(radial, optax.sgd(config.radial_step_size)),
            "Converges within 100 steps; the weights of the rings are those of the "
            "start.",
        ),
        f"annealed-{num}": (
            annealed_svgd(hot, config.num_steps, config.annealed_step_size),
            "Its weights do not depend on the start.",
        ),
        **{
            name: (vanilla, plenty if size == max(sizes.values()) else "")
            for name, size in sizes.items()
        },
    }
    toy = radial_toy(Shells((4.0, 8.0), 0.5, 2))
    every = config.record_every
    return toy.entries(config, samplers, sizes=sizes, record_every=every)


def gaps(config: SampleEfficiencyConfig, outcomes: Mapping[str, Outcome]) -> dict:
    """Return how far each mean log-likelihood is from its end after 100 steps."""
    found = {}
    for name, outcome in outcomes.items():
        if outcome.history:
            curve, steps = outcome.history["log_density"], outcome.history["step"]
            at_100 = curve[:, np.argmin(np.abs(steps[0] - 100))]
            found[name] = {"gap_after_100_steps": np.abs(at_100 - curve[:, -1])}
    return found


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
    Boxes("wasserstein", "w1_radius", "Wasserstein-1 of the radii"),
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
    compare=gaps,
)
