"""Training of energies: objectives, negatives, generators, and the loop."""

from equistein.training._batch import Batch as Batch
from equistein.training._checkpoint import CheckpointError as CheckpointError
from equistein.training._fit import fit as fit, prepared as prepared
from equistein.training._fitted import (
    DivergenceError as DivergenceError,
    Fitted as Fitted,
)
from equistein.training._labels import check_classes as check_classes
from equistein.training._optimizer import adam as adam
from equistein.training._rollback import RollBack as RollBack
from equistein.training._source import (
    check_on_disk as check_on_disk,
    SEEN as SEEN,
    spread_rows as spread_rows,
)
from equistein.training._trainer import Precision as Precision, Trainer as Trainer
from equistein.training._tree_file import load_tree as load_tree
from equistein.training._tree_json import (
    LIBRARY_PARTS as LIBRARY_PARTS,
    ModelFileError as ModelFileError,
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
from equistein.training.starts._base import AbstractStart as AbstractStart
from equistein.training.starts._box import Box as Box
from equistein.training.starts._normals import Normals as Normals
