"""The experiments of the paper: a frozen configuration in, outcomes and figures out."""

from equistein.experiments._registry import (
    EXPERIMENTS as EXPERIMENTS,
    run_experiment as run_experiment,
)
from equistein.experiments.engine._experiment import (
    Entry as Entry,
    Experiment as Experiment,
    Trial as Trial,
)
from equistein.experiments.engine._run import perform as perform
