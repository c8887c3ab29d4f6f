"""Invariant feature maps F(x)."""

from equistein.features._base import (
    AbstractFeatures as AbstractFeatures,
    jacobian as jacobian,
    pair_differences as pair_differences,
    smooth_norm as smooth_norm,
)
from equistein.features._pair_features import (
    SortedDistances as SortedDistances,
    SortedRowSums as SortedRowSums,
)
from equistein.features._pair_histogram import PairHistogram as PairHistogram
from equistein.features._periodic import Periodic as Periodic
from equistein.features._radius import (
    Concatenated as Concatenated,
    Coordinates as Coordinates,
    Radius as Radius,
)
from equistein.features._sums_over_labels import SumsOverLabels as SumsOverLabels
