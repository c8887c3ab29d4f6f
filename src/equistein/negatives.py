"""Samples of the model that contrastive divergence sets against the data."""

from equistein.training import (
    AbstractNegatives as AbstractNegatives,
    Persistent as Persistent,
    ReplayBuffer as ReplayBuffer,
)
