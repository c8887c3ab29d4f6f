"""What `es.fit` minimizes: losses that add and scale."""

from equistein.diffusion import (
    NoiseConditionalScoreMatching as NoiseConditionalScoreMatching,
)
from equistein.training import (
    AbstractObjective as AbstractObjective,
    Blurred as Blurred,
    ContrastiveDivergence as ContrastiveDivergence,
    CrossEntropy as CrossEntropy,
    DenoisingScoreMatching as DenoisingScoreMatching,
    ForceMatching as ForceMatching,
    ScoreMatching as ScoreMatching,
    SquaredError as SquaredError,
    Sum as Sum,
)
