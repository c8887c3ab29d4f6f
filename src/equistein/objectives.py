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
    EnergyMatching as EnergyMatching,
    ForceMatching as ForceMatching,
    Phases as Phases,
    ScoreMatching as ScoreMatching,
    SquaredError as SquaredError,
    Sum as Sum,
)
