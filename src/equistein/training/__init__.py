"""Training of energies: objectives, negatives, generators, and the loop."""

from equistein._serialization import FileFormatError as FileFormatError
from equistein.training._checkpoint import CheckpointError as CheckpointError
from equistein.training._contrastive_divergence import (
    AbstractNegatives as AbstractNegatives,
    ContrastiveDivergence as ContrastiveDivergence,
    FromData as FromData,
    Persistent as Persistent,
    PersistentState as PersistentState,
    Reweighted as Reweighted,
)
from equistein.training._data import (
    AbstractSource as AbstractSource,
    Batch as Batch,
    check_classes as check_classes,
    check_on_disk as check_on_disk,
    InMemory as InMemory,
    OnDisk as OnDisk,
    Stream as Stream,
)
from equistein.training._fit import check_data as check_data, fit as fit
from equistein.training._fit_linear import fit_linear as fit_linear
from equistein.training._fitted import (
    DivergenceError as DivergenceError,
    Fitted as Fitted,
    SamplesOf as SamplesOf,
)
from equistein.training._generators import (
    AbstractGenerator as AbstractGenerator,
    Clamp as Clamp,
    Condition as Condition,
    parts_of as parts_of,
    SamplingGenerator as SamplingGenerator,
)
from equistein.training._initial import (
    AbstractInitial as AbstractInitial,
    Box as Box,
    DataPoints as DataPoints,
    Normals as Normals,
)
from equistein.training._loop import Monitor as Monitor
from equistein.training._objectives import (
    AbstractObjective as AbstractObjective,
    Blurred as Blurred,
    CrossEntropy as CrossEntropy,
    ForceMatching as ForceMatching,
    Loss as Loss,
    SquaredError as SquaredError,
    Sum as Sum,
)
from equistein.training._trainer import (
    adam as adam,
    Optimization as Optimization,
    Precision as Precision,
    Trainer as Trainer,
)
from equistein.training._tree_file import (
    LIBRARY_PARTS as LIBRARY_PARTS,
    load_tree as load_tree,
)
