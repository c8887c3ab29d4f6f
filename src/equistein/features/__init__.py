"""Invariant feature maps F(x)."""

from equistein.features._base import (
    AbstractFeatures as AbstractFeatures,
    jacobian as jacobian,
    pair_differences as pair_differences,
    smooth_norm as smooth_norm,
)
from equistein.features._concatenated import Concatenated as Concatenated
from equistein.features._coordinates import Coordinates as Coordinates
from equistein.features._pair_histogram import PairHistogram as PairHistogram
from equistein.features._periodic import Periodic as Periodic
from equistein.features._radius import Radius as Radius
from equistein.features._sorted_distances import SortedDistances as SortedDistances
from equistein.features._sorted_row_sums import SortedRowSums as SortedRowSums
from equistein.features._sums_over_labels import SumsOverLabels as SumsOverLabels
