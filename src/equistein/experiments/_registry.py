"""All experiments, by name."""

from equistein.experiments._base import Experiment
from equistein.experiments._c4_gaussians import C4_GAUSSIANS
from equistein.experiments._dw4 import DW4
from equistein.experiments._dw4_bandwidths import DW4_BANDWIDTHS
from equistein.experiments._dw4_sampling import DW4_SAMPLING
from equistein.experiments._dw4_single_state import DW4_SINGLE_STATE
from equistein.experiments._ebm_circles import EBM_CIRCLES
from equistein.experiments._images import IMAGES
from equistein.experiments._jem_c4 import JEM_C4
from equistein.experiments._lj13 import LJ13
from equistein.experiments._lj13_sampling import LJ13_SAMPLING
from equistein.experiments._molecules import MOLECULES
from equistein.experiments._molecules_training import MOLECULES_TRAINING
from equistein.experiments._robustness import ROBUSTNESS
from equistein.experiments._sample_efficiency import SAMPLE_EFFICIENCY
from equistein.experiments._shells import TWO_CIRCLES, TWO_SPHERES

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        C4_GAUSSIANS,
        TWO_CIRCLES,
        TWO_SPHERES,
        SAMPLE_EFFICIENCY,
        ROBUSTNESS,
        JEM_C4,
        EBM_CIRCLES,
        DW4,
        DW4_SINGLE_STATE,
        DW4_SAMPLING,
        DW4_BANDWIDTHS,
        LJ13_SAMPLING,
        LJ13,
        MOLECULES,
        MOLECULES_TRAINING,
        IMAGES,
    )
}
