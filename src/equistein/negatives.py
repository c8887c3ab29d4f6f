"""Samples of the model that contrastive divergence sets against the data."""

from equistein.training import (
    AbstractNegatives as AbstractNegatives,
    FromData as FromData,
    Persistent as Persistent,
    Reweighted as Reweighted,
)
