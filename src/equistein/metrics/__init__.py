"""How good samples and models are."""

from equistein.metrics._annealed_importance_sampling import (
    annealed_importance_sampling as annealed_importance_sampling,
    LogNormalizer as LogNormalizer,
)
from equistein.metrics._bits_per_dimension import (
    bits_per_dimension as bits_per_dimension,
)
from equistein.metrics._classification import (
    accuracy as accuracy,
    auroc as auroc,
    expected_calibration_error as expected_calibration_error,
    Reliability as Reliability,
    reliability as reliability,
)
from equistein.metrics._distances import (
    energy_distance as energy_distance,
    total_variation as total_variation,
    wasserstein_1d as wasserstein_1d,
)
from equistein.metrics._effective_sample_size import (
    effective_sample_size as effective_sample_size,
)
from equistein.metrics._frechet_distance import frechet_distance as frechet_distance
from equistein.metrics._geometric_wasserstein import (
    geometric_wasserstein as geometric_wasserstein,
    GeometricWasserstein as GeometricWasserstein,
)
from equistein.metrics._importance_weights import (
    reweight as reweight,
    Weighted as Weighted,
)
from equistein.metrics._kernel_stein_discrepancy import (
    kernel_stein_discrepancy as kernel_stein_discrepancy,
)
from equistein.metrics._mean_log_likelihood import (
    mean_log_likelihood as mean_log_likelihood,
)
from equistein.metrics._mode_weights import (
    mode_weights as mode_weights,
    proportions as proportions,
)
from equistein.metrics._outlier_scores import (
    outlier_scores as outlier_scores,
    typicality as typicality,
)
from equistein.metrics._particle_density import (
    AbstractParticleDensity as AbstractParticleDensity,
)
from equistein.metrics._particle_systems import (
    pair_distances as pair_distances,
    virial as virial,
)
from equistein.metrics._precision_and_recall import (
    nearest_distances as nearest_distances,
    precision_and_recall as precision_and_recall,
    PrecisionAndRecall as PrecisionAndRecall,
)
from equistein.metrics._projected_gradient_attack import (
    projected_gradient_attack as projected_gradient_attack,
)
from equistein.metrics._published_scores import (
    published_scores as published_scores,
    PublishedScore as PublishedScore,
)
from equistein.metrics._score_against import score_against as score_against
from equistein.metrics._scores import (
    ReferenceQuality as ReferenceQuality,
    Score as Score,
    Scores as Scores,
)
from equistein.samplers import split_r_hat as split_r_hat
