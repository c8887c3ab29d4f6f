"""What `es.fit` minimizes: losses that add and scale."""

from equistein.diffusion import (
    DenoisingScoreMatching as DenoisingScoreMatching,
    NoiseConditionalScoreMatching as NoiseConditionalScoreMatching,
    ScoreMatching as ScoreMatching,
)
from equistein.training import (
    AbstractObjective as AbstractObjective,
    Blurred as Blurred,
    ContrastiveDivergence as ContrastiveDivergence,
    CrossEntropy as CrossEntropy,
    ForceMatching as ForceMatching,
    SquaredError as SquaredError,
    Sum as Sum,
)
