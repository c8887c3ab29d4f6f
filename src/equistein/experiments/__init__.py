"""The experiments of the paper: a frozen configuration in, outcomes and figures out."""

from equistein.experiments._expected_time import (
    expected_time as expected_time,
    ExpectedTime as ExpectedTime,
)
from equistein.experiments._registry import (
    EXPERIMENTS as EXPERIMENTS,
    run_experiment as run_experiment,
)
from equistein.experiments.engine._checks import AbstractConfig as AbstractConfig
from equistein.experiments.engine._experiment import (
    Entry as Entry,
    Experiment as Experiment,
    Trial as Trial,
)
from equistein.experiments.engine._figures import (
    Bars as Bars,
    Boxes as Boxes,
    Configurations as Configurations,
    Curves as Curves,
    Histograms as Histograms,
    Own as Own,
)
from equistein.experiments.engine._run import (
    create_folder as create_folder,
    perform as perform,
)
from equistein.runs import seed_outcome as seed_outcome
