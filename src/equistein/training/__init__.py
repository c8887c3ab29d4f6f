"""Contrastive divergence with persistent particles."""

from equistein.training._checkpoint import (
    CheckpointError as CheckpointError,
    load_checkpoint as load_checkpoint,
    save_checkpoint as save_checkpoint,
)
from equistein.training._config import FitConfig as FitConfig
from equistein.training._contrastive_divergence import (
    BatchInfo as BatchInfo,
    ContrastiveDivergence as ContrastiveDivergence,
    TrainState as TrainState,
)
from equistein.training._fit import (
    fit as fit,
    Fitted as Fitted,
    load_fitted as load_fitted,
    save_fitted as save_fitted,
)
from equistein.training._start import Box as Box
