"""Training of energies: objectives, negatives, generators, and the loop."""

from equistein.training import (
    callbacks as callbacks,
    generators as generators,
    negatives as negatives,
    objectives as objectives,
    starts as starts,
)
from equistein.training._batch import Batch as Batch
from equistein.training._checkpoint import (
    CheckpointError as CheckpointError,
    load_checkpoint as load_checkpoint,
    save_checkpoint as save_checkpoint,
)
from equistein.training._fit import (
    check_data as check_data,
    fit as fit,
    prepared as prepared,
)
from equistein.training._fitted import (
    DivergenceError as DivergenceError,
    Fitted as Fitted,
)
from equistein.training._labels import check_classes as check_classes
from equistein.training._optimizer import adam as adam
from equistein.training._rollback import RollBack as RollBack
from equistein.training._trainer import Trainer as Trainer, TrainState as TrainState
from equistein.training._tree_file import (
    load_tree as load_tree,
    ModelFileError as ModelFileError,
    name_of as name_of,
    save_tree as save_tree,
)
from equistein.training.callbacks import (
    AbstractCallback as AbstractCallback,
    EarlyStopping as EarlyStopping,
    Monitor as Monitor,
    OnEpoch as OnEpoch,
)
from equistein.training.generators import (
    AbstractGenerator as AbstractGenerator,
    in_parts as in_parts,
    SamplingGenerator as SamplingGenerator,
)
from equistein.training.negatives import (
    AbstractNegatives as AbstractNegatives,
    displacement as displacement,
    Persistent as Persistent,
    PersistentState as PersistentState,
    ReplayBuffer as ReplayBuffer,
    score_norm as score_norm,
)
from equistein.training.objectives import (
    AbstractObjective as AbstractObjective,
    Blurred as Blurred,
    ContrastiveDivergence as ContrastiveDivergence,
    CrossEntropy as CrossEntropy,
    DenoisingScoreMatching as DenoisingScoreMatching,
    divergence as divergence,
    SquaredError as SquaredError,
    Sum as Sum,
)
from equistein.training.starts import (
    AbstractStart as AbstractStart,
    Box as Box,
    Normals as Normals,
)
