"""`hidden-units`: a Bayesian network whose units have neither order nor sign."""

import dataclasses

from equistein.experiments.engine._experiment import Entry, Experiment
from equistein.experiments.engine._figures import Boxes
from equistein.experiments.posteriors._config import PAPER, PosteriorConfig, SMOKE
from equistein.experiments.posteriors._entries import entries
from equistein.experiments.posteriors._network import Network, regression_data
from equistein.experiments.posteriors._report import compare, conclude, figures


@dataclasses.dataclass(frozen=True, kw_only=True)
class HiddenUnitsConfig(PosteriorConfig):
    """Settings of `hidden-units`.

    Attributes:
        num_units: The hidden units.
        num_data: The data that the network learns from.
    """

    num_units: int = 5
    num_data: int = 40

    def model(self) -> Network:
        """Return the network and its data."""
        return Network(*regression_data(self.num_data, 0), self.num_units)


def _entries(config: HiddenUnitsConfig) -> list[Entry]:
    return entries(config, config.model())


_QUICK = HiddenUnitsConfig()
HIDDEN_UNITS = Experiment(
    name="hidden-units",
    figure="beyond the paper",
    headlines=("energy_distance_ratio", "test_log_density", "evaluations_to_1000"),
    summary="the posterior of a network of five hidden units, whose orders and signs "
    "mean nothing: 3,840 copies of each mode",
    presets={
        "smoke": dataclasses.replace(_QUICK, **SMOKE, num_units=2, num_data=10),
        "quick": _QUICK,
        "paper": dataclasses.replace(_QUICK, **PAPER),
    },
    entries=_entries,
    one_a_core=True,
    figures=(
        *figures("output weight of the first unit", "the signs of the output weights"),
        Boxes("test-log-density", "test_log_density", "mean log density of test data"),
    ),
    compare=compare,
    conclude=conclude,
)
