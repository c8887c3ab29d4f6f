"""Invariant feature maps F(x)."""

from equistein.features._base import (
    AbstractFeatures as AbstractFeatures,
    pair_differences as pair_differences,
    pair_sum as pair_sum,
    smooth_norm as smooth_norm,
)
from equistein.features._jacobian_sums import (
    Blocks as Blocks,
    Equations as Equations,
    Rows as Rows,
    score_scatter as score_scatter,
)
from equistein.features._pair_basis import (
    PairBasis as PairBasis,
    PairWall as PairWall,
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
from equistein.features._triplet_basis import TripletBasis as TripletBasis
