"""How good samples are."""

from equistein.metrics._distances import (
    energy_distance as energy_distance,
    wasserstein_1d as wasserstein_1d,
)
from equistein.metrics._log_likelihood import mean_log_likelihood as mean_log_likelihood
from equistein.metrics._stein_discrepancy import (
    kernel_stein_discrepancy as kernel_stein_discrepancy,
)
from equistein.metrics._weights import mode_weights as mode_weights, shares as shares
