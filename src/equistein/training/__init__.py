"""Training of energies: objectives, negatives, generators, and the loop."""

from equistein._serialization import FileFormatError as FileFormatError
from equistein.training._batch import Batch as Batch
from equistein.training._checkpoint import CheckpointError as CheckpointError
from equistein.training._fit import checked_batch as checked_batch, fit as fit
from equistein.training._fitted import (
    DivergenceError as DivergenceError,
    Fitted as Fitted,
)
from equistein.training._labels import check_classes as check_classes
from equistein.training._optimization import (
    adam as adam,
    Optimization as Optimization,
    Precision as Precision,
    RollBack as RollBack,
)
from equistein.training._sources import (
    AbstractSource as AbstractSource,
    check_on_disk as check_on_disk,
    InMemory as InMemory,
    OnDisk as OnDisk,
    SEEN as SEEN,
    spread_rows as spread_rows,
    Stream as Stream,
)
from equistein.training._trainer import Trainer as Trainer
from equistein.training._tree_file import (
    LIBRARY_PARTS as LIBRARY_PARTS,
    load_tree as load_tree,
)
from equistein.training.callbacks._base import AbstractCallback as AbstractCallback
from equistein.training.callbacks._early_stopping import EarlyStopping as EarlyStopping
from equistein.training.callbacks._monitor import Monitor as Monitor
from equistein.training.callbacks._on_epoch import OnEpoch as OnEpoch
from equistein.training.callbacks._tensorboard import TensorBoard as TensorBoard
from equistein.training.generators._base import (
    AbstractGenerator as AbstractGenerator,
    Condition as Condition,
)
from equistein.training.generators._clamp import Clamp as Clamp, parts_of as parts_of
from equistein.training.generators._sampling import (
    SamplingGenerator as SamplingGenerator,
)
from equistein.training.initial._base import AbstractInitial as AbstractInitial
from equistein.training.initial._box import Box as Box
from equistein.training.initial._normals import Normals as Normals
from equistein.training.negatives._base import (
    AbstractNegatives as AbstractNegatives,
    displacement as displacement,
    score_norm as score_norm,
)
from equistein.training.negatives._from_data import FromData as FromData
from equistein.training.negatives._persistent import (
    Persistent as Persistent,
    PersistentState as PersistentState,
)
from equistein.training.negatives._replay_buffer import ReplayBuffer as ReplayBuffer
from equistein.training.negatives._reweighted import Reweighted as Reweighted
from equistein.training.objectives._base import (
    AbstractObjective as AbstractObjective,
    Sum as Sum,
)
from equistein.training.objectives._blurred import Blurred as Blurred
from equistein.training.objectives._contrastive_divergence import (
    ContrastiveDivergence as ContrastiveDivergence,
    divergence as divergence,
)
from equistein.training.objectives._cross_entropy import CrossEntropy as CrossEntropy
from equistein.training.objectives._denoising import (
    DenoisingScoreMatching as DenoisingScoreMatching,
)
from equistein.training.objectives._energy_matching import (
    EnergyMatching as EnergyMatching,
    paired as paired,
)
from equistein.training.objectives._force_matching import ForceMatching as ForceMatching
from equistein.training.objectives._phases import Phases as Phases
from equistein.training.objectives._score_matching import ScoreMatching as ScoreMatching
from equistein.training.objectives._squared_error import SquaredError as SquaredError
