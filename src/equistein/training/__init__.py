"""Training of energies: contrastive divergence, labels, and score matching."""

from equistein.training._annealed import Annealing as Annealing
from equistein.training._checkpoint import (
    CheckpointError as CheckpointError,
    load_checkpoint as load_checkpoint,
    save_checkpoint as save_checkpoint,
)
from equistein.training._config import DENOISING as DENOISING, FitConfig as FitConfig
from equistein.training._fit import check_start as check_start, fit as fit
from equistein.training._fitted import (
    DivergenceError as DivergenceError,
    Fitted as Fitted,
)
from equistein.training._labels import check_classes as check_classes
from equistein.training._lengths import Lengths as Lengths
from equistein.training._losses import (
    contrastive_divergence as contrastive_divergence,
    cross_entropy as cross_entropy,
    denoising_score_matching as denoising_score_matching,
    energy_magnitude as energy_magnitude,
    noise_levels as noise_levels,
    squared_error as squared_error,
)
from equistein.training._start import (
    AbstractStart as AbstractStart,
    Box as Box,
    Normals as Normals,
    start_for as start_for,
)
from equistein.training._state import BatchInfo as BatchInfo, TrainState as TrainState
from equistein.training._store import (
    load_fitted as load_fitted,
    save_fitted as save_fitted,
)
from equistein.training._trainer import Trainer as Trainer
