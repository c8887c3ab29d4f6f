"""Invariant feature maps F(x)."""

from equistein.features._base import (
    AbstractFeatures as AbstractFeatures,
    pair_differences as pair_differences,
    pair_sum as pair_sum,
    smooth_norm as smooth_norm,
)
from equistein.features._bonded import Bonded as Bonded
from equistein.features._coordinates import (
    Concatenated as Concatenated,
    Coordinates as Coordinates,
    Periodic as Periodic,
    Radius as Radius,
    RadiusOfGyration as RadiusOfGyration,
)
from equistein.features._internal_coordinates import (
    AbstractInternalCoordinates as AbstractInternalCoordinates,
    Distances as Distances,
    Torsions as Torsions,
)
from equistein.features._invariants import (
    Polynomials as Polynomials,
    Quadratic as Quadratic,
    RandomFeatures as RandomFeatures,
)
from equistein.features._pair_basis import PairBasis as PairBasis
from equistein.features._pair_features import (
    PairHistogram as PairHistogram,
    SortedDistances as SortedDistances,
    SortedRowSums as SortedRowSums,
)
from equistein.features._triplet_basis import TripletBasis as TripletBasis
