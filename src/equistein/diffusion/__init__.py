"""Score matching, what completes it, and energies at all noise levels."""

from equistein.diffusion._blurred_normals import BlurredNormals as BlurredNormals
from equistein.diffusion._noise_energy import (
    AbstractNoiseEnergy as AbstractNoiseEnergy,
    image_bits as image_bits,
    MixtureNoiseEnergy as MixtureNoiseEnergy,
    NoiseEnergy as NoiseEnergy,
)
from equistein.diffusion._reverse_diffusion import (
    AbstractDiffusionSteps as AbstractDiffusionSteps,
    DiffusionSteps as DiffusionSteps,
    HeunSteps as HeunSteps,
    ReverseDiffusion as ReverseDiffusion,
    StepSizes as StepSizes,
)
from equistein.diffusion._score_matching import (
    denoising_loss as denoising_loss,
    DenoisingScoreMatching as DenoisingScoreMatching,
    NoiseConditionalScoreMatching as NoiseConditionalScoreMatching,
    repeated_denoising_loss as repeated_denoising_loss,
    ScoreMatching as ScoreMatching,
)
from equistein.diffusion._torsion_matching import match_torsions as match_torsions
