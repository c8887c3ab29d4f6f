"""`phases`: overlapping waves, which can be exchanged and whose phases come again."""

import dataclasses

from equistein.experiments.engine._experiment import Entry, Experiment
from equistein.experiments.posteriors._config import PAPER, PosteriorConfig, SMOKE
from equistein.experiments.posteriors._entries import entries
from equistein.experiments.posteriors._report import compare, conclude, figures
from equistein.experiments.posteriors._waves import signal_data, Waves


@dataclasses.dataclass(frozen=True, kw_only=True)
class PhasesConfig(PosteriorConfig):
    """Settings of `phases`.

    Attributes:
        num_components: The waves of the model; the data have three.
        num_times: The times at which the signal is seen.
    """

    num_components: int = 3
    num_times: int = 40

    def model(self) -> Waves:
        """Return the model and its data."""
        return Waves(*signal_data(self.num_times), self.num_components)


def _entries(config: PhasesConfig) -> list[Entry]:
    return entries(config, config.model())


_QUICK = PhasesConfig()
PHASES = Experiment(
    name="phases",
    figure="beyond the paper",
    headlines=("energy_distance_ratio", "truth_covered", "evaluations_to_1000"),
    summary="three sinusoids in noise, which can be exchanged, with phases on circles",
    presets={
        "smoke": dataclasses.replace(_QUICK, **SMOKE, num_times=10),
        "quick": _QUICK,
        "paper": dataclasses.replace(_QUICK, **PAPER),
    },
    entries=_entries,
    one_a_core=True,
    figures=figures("frequency of the first wave", "the order of the frequencies"),
    compare=compare,
    conclude=conclude,
)
