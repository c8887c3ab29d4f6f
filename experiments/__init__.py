"""The experiments of the paper, and more: `python -m experiments NAME`."""

import importlib

from experiments._engine import Experiment

MODULES = {
    "c4-gaussians": "c4_gaussians",
    "two-circles": "two_circles",
    "two-spheres": "two_circles",
    "sample-efficiency": "two_circles",
    "robustness": "c4_gaussians",
    "hard-mixture": "hard_mixture",
    "jem-c4": "jem_c4",
    "ebm-circles": "ebm_circles",
    "dw4": "dw4",
    "dw4-single-state": "dw4_single_state",
    "particle-sampling": "particle_sampling",
    "cluster": "cluster",
    "alanine-dipeptide": "alanine_dipeptide",
    "lj13": "lj13",
    "lj55": "lj55",
    "lj-fluid": "lj_fluid",
    "objectives": "objectives",
    "learning-curves": "learning_curves",
    "molecules": "molecules",
    "images": "images",
    "mixture": "mixture",
    "posteriordb": "posteriordb",
}
"""The module of each experiment, imported only for it."""


def experiment(name: str) -> Experiment:
    """Return an experiment by its name, one of `MODULES`."""
    module = importlib.import_module(f"experiments.{MODULES[name]}")
    return getattr(module, name.replace("-", "_").upper())
