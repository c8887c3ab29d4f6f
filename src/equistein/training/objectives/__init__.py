"""What is minimized: losses that add and scale."""

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
from equistein.training.objectives._squared_error import SquaredError as SquaredError
