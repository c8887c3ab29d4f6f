"""The experiments of the paper: a frozen configuration in, outcomes and figures out."""

from equistein.experiments._base import (
    check_config as check_config,
    Experiment as Experiment,
)
from equistein.experiments._registry import EXPERIMENTS as EXPERIMENTS
