"""How good samples and models are."""

from equistein.metrics._annealed_importance_sampling import (
    annealed_importance_sampling as annealed_importance_sampling,
    LogNormalizer as LogNormalizer,
)
from equistein.metrics._classification import (
    accuracy as accuracy,
    expected_calibration_error as expected_calibration_error,
    outlier_scores as outlier_scores,
    typicality as typicality,
)
from equistein.metrics._coverage import (
    check_coverage as check_coverage,
    Coverage as Coverage,
    summarize_chains as summarize_chains,
)
from equistein.metrics._distances import (
    energy_distance as energy_distance,
    frechet_distance as frechet_distance,
    mode_weights as mode_weights,
    precision_and_recall as precision_and_recall,
    PrecisionAndRecall as PrecisionAndRecall,
    proportions as proportions,
    total_variation as total_variation,
    wasserstein_1d as wasserstein_1d,
)
from equistein.metrics._free_energy import (
    free_energy as free_energy,
    FreeEnergy as FreeEnergy,
    thermal_averages as thermal_averages,
)
from equistein.metrics._molecules import (
    bond_orders as bond_orders,
    compare_molecules as compare_molecules,
    force_errors as force_errors,
    score_molecules as score_molecules,
    shared_bonds as shared_bonds,
)
from equistein.metrics._noise_contrastive import (
    noise_contrastive_estimation as noise_contrastive_estimation,
)
from equistein.metrics._particle_systems import (
    AbstractParticleDensity as AbstractParticleDensity,
    geometric_wasserstein as geometric_wasserstein,
    GeometricWasserstein as GeometricWasserstein,
    pair_distances as pair_distances,
)
from equistein.metrics._radial_distribution import (
    radial_distribution as radial_distribution,
    RadialDistribution as RadialDistribution,
)
from equistein.metrics._sample_statistics import (
    bits_per_dimension as bits_per_dimension,
    kernel_stein_discrepancy as kernel_stein_discrepancy,
    mean_log_likelihood as mean_log_likelihood,
    reweight as reweight,
    virial as virial,
    Weighted as Weighted,
)
from equistein.metrics._score_against import score_against as score_against
from equistein.metrics._scores import (
    published_scores as published_scores,
    PublishedScore as PublishedScore,
    ReferenceQuality as ReferenceQuality,
    Score as Score,
    Scores as Scores,
)
from equistein.samplers import split_r_hat as split_r_hat
