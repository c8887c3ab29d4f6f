"""All experiments, by name."""

import pathlib
from collections.abc import Callable
from typing import Any

from equistein.experiments.engine._experiment import Experiment
from equistein.experiments.engine._run import create_folder, perform
from equistein.experiments.images._images import IMAGES
from equistein.experiments.learned._dw4 import DW4
from equistein.experiments.learned._dw4_single_state import DW4_SINGLE_STATE
from equistein.experiments.learned._ebm_circles import EBM_CIRCLES
from equistein.experiments.learned._jem_c4 import JEM_C4
from equistein.experiments.learned._learning_curves import LEARNING_CURVES
from equistein.experiments.learned._lj13 import LJ13
from equistein.experiments.learned._objectives import DW4_OBJECTIVES, OBJECTIVES
from equistein.experiments.molecules._molecules import MOLECULES
from equistein.experiments.molecules._molecules_training import MOLECULES_TRAINING
from equistein.experiments.posteriors._hidden_units import HIDDEN_UNITS
from equistein.experiments.posteriors._mixture import MIXTURE
from equistein.experiments.posteriors._phases import PHASES
from equistein.experiments.systems._cluster import CLUSTER
from equistein.experiments.systems._dw4_bandwidths import DW4_BANDWIDTHS
from equistein.experiments.systems._lj38 import LJ38
from equistein.experiments.systems._sampling_presets import (
    DW4_SAMPLING,
    LJ13_SAMPLING,
    LJ55_SAMPLING,
)
from equistein.experiments.toys._gaussians import C4_GAUSSIANS, ROBUSTNESS
from equistein.experiments.toys._hard_mixture import HARD_MIXTURE
from equistein.experiments.toys._shells import (
    SAMPLE_EFFICIENCY,
    TWO_CIRCLES,
    TWO_SPHERES,
)
from equistein.runs import Outcome

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        C4_GAUSSIANS,
        TWO_CIRCLES,
        TWO_SPHERES,
        SAMPLE_EFFICIENCY,
        ROBUSTNESS,
        HARD_MIXTURE,
        JEM_C4,
        EBM_CIRCLES,
        DW4,
        DW4_SINGLE_STATE,
        DW4_SAMPLING,
        DW4_BANDWIDTHS,
        LJ13_SAMPLING,
        LJ55_SAMPLING,
        LJ38,
        CLUSTER,
        LJ13,
        OBJECTIVES,
        DW4_OBJECTIVES,
        LEARNING_CURVES,
        MOLECULES,
        MOLECULES_TRAINING,
        IMAGES,
        MIXTURE,
        HIDDEN_UNITS,
        PHASES,
    )
}


def run_experiment(
    name: str,
    config: Any = "quick",
    *,
    seed: int = 0,
    folder: str | pathlib.Path | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> dict[str, Outcome]:
    """Run an experiment from Python, as the command line does.

    Args:
        name: Its name, one of `EXPERIMENTS`.
        config: A preset's name, or a configuration, such as
            `dataclasses.replace(EXPERIMENTS[name].presets["quick"], num_seeds=1)`.
        seed: The first seed.
        folder: A new folder for all that the run leaves; None to write nothing.
        tell: What is told of each part of the run, such as `print`.

    Returns:
        The outcome of each sampler or model, with its seeds joined; `exact` is the
        floor.

    Raises:
        ValueError: If there is no such experiment or preset, or the configuration, or
            something that it needs, does not do.
    """
    if name not in EXPERIMENTS:
        raise ValueError(
            f"`name` must be one of {', '.join(EXPERIMENTS)}, but got {name!r}."
        )
    experiment, preset = EXPERIMENTS[name], "of its own"
    if isinstance(config, str):
        if config not in experiment.presets:
            raise ValueError(
                f"`config` must be a configuration, or one of "
                f"{', '.join(experiment.presets)}, but got {config!r}."
            )
        preset, config = config, experiment.presets[config]
    experiment.check(config)
    kept = None
    if folder is not None:
        kept = create_folder(experiment, config, seed, pathlib.Path(folder), preset)
    return perform(experiment, config, seed, kept, preset=preset, tell=tell)
