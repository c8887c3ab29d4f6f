"""The settings and samplers of particle-sampling."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar, Literal

from experiments._engine import AbstractConfig

ACCEPTANCE = {"hmc": 0.65, "nuts": 0.8, "mclmc": 0.9}  # as their authors say
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
    "hmc": "BlackJAX's HMC with trajectories of a set number of steps, whose size is "
    "adapted. It starts where annealed MALA is after a few evaluations, which count.",
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
        hamiltonian_step_size: The step size from which BlackJAX's chains begin.
        num_adapt: The steps in which these adapt theirs.
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
    num_adapt: int = 300
    inner: Literal["mala", "hmc"] = "mala"
    num_ladders: int = 100
    score_clip: float = 100.0

    or_zero: ClassVar[Sequence[str]] = ("stein_step", "noise")
    fractions: ClassVar[Sequence[str]] = ("start_inverse_temperature",)
    several: ClassVar[Sequence[str]] = ("num_particles",)
    words: ClassVar[Mapping[str, Collection[str]]] = {"samplers": ANNEALED | CHAINS}

    def __post_init__(self):
        """Raise `ValueError` for settings that do not go together."""
        super().__post_init__()
        if self.pair_budget < min((*self.budgets, self.num_steps)):
            raise ValueError(
                "`pair_budget` must be at least the smallest of `budgets`, but got "
                f"{self.pair_budget!r}."
            )

    def looks(self, last: int) -> list[int]:
        """Return the numbers of evaluations to look at, up to the last."""
        return sorted({budget for budget in self.budgets if budget < last} | {last})


def kind_of(name: str) -> str:
    """Return what continues through the budgets of a sampler."""
    return name.removeprefix("svgd-").removesuffix("-svgd")


def needs_blackjax(config: SystemConfig, name: str) -> bool:
    """Return whether BlackJAX moves the chains of a sampler."""
    return name in CHAINS and (kind_of(name) in ACCEPTANCE or config.inner == "hmc")
