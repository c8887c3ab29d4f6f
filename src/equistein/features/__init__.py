"""Invariant feature maps F(x)."""

from equistein.features._base import (
    AbstractFeatures as AbstractFeatures,
    jacobian as jacobian,
)
from equistein.features._coordinates import Coordinates as Coordinates
from equistein.features._radius import Radius as Radius
from equistein.features._sorted_distances import SortedDistances as SortedDistances
