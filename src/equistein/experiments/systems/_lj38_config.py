"""The settings of the cluster of 38 particles."""

import dataclasses

import numpy as np

from equistein.experiments.engine._checks import AbstractConfig, has_blackjax


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClusterConfig(AbstractConfig):
    """Settings of `lj38`.

    Attributes:
        num_seeds: The number of independent sets of ladders, of each start.
        num_ladders: The number of ladders in a set.
        temperatures: The ladder, from cold to hot, in units of the pair energy.
        leapfrog_steps: Steps of the integrator in a move of Hamiltonian Monte Carlo,
            which needs BlackJAX; 1 for MALA, which does not.
        num_warm_up: Moves before those that are measured, in which step sizes adapt.
        num_steps: Moves that are measured, each followed by swaps.
        num_rounds: How often the configurations are relaxed, to tell the funnels.
        quench_steps: The steps of such a descent.
    """

    num_seeds: int = 2
    num_ladders: int = 4
    temperatures: tuple[float, ...] = (
        0.1, 0.108, 0.116, 0.124, 0.132, 0.14, 0.148, 0.156, 0.163, 0.17, 0.178, 0.187,
        0.197, 0.209, 0.223, 0.24, 0.258, 0.278, 0.3,
    )  # fmt: skip
    leapfrog_steps: int = 30
    num_warm_up: int = 1_500
    num_steps: int = 4_000
    num_rounds: int = 40
    quench_steps: int = 200

    def __post_init__(self):
        """Raise `ValueError` for settings that do not go together."""
        super().__post_init__()
        if len(self.temperatures) < 2 or np.any(np.diff(self.temperatures) <= 0):
            raise ValueError(
                "`temperatures` must be two or more that rise, but got "
                f"{self.temperatures!r}."
            )
        if self.num_seeds * self.num_ladders < 2:
            raise ValueError(
                "`num_seeds` times `num_ladders` must be at least 2, for errors, but "
                f"got {self.num_seeds!r} and {self.num_ladders!r}."
            )
        if self.num_rounds > self.num_steps:
            raise ValueError(
                "`num_rounds` must be at most `num_steps`, but got "
                f"{self.num_rounds!r} and {self.num_steps!r}."
            )


def check(config: ClusterConfig) -> None:
    """Raise `ValueError` where the settings need BlackJAX and it is not there."""
    if config.leapfrog_steps > 1 and not has_blackjax():
        raise ValueError(
            "lj38 needs BlackJAX for Hamiltonian Monte Carlo: pip install "
            "'equistein[bayes]'; or set `leapfrog_steps` to 1 for MALA, which needs "
            "many times the evaluations."
        )
