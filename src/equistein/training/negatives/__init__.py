"""Samples of the model that contrastive divergence sets against the data."""

from equistein.training.negatives._base import (
    AbstractNegatives as AbstractNegatives,
    displacement as displacement,
    score_norm as score_norm,
)
from equistein.training.negatives._persistent import (
    Persistent as Persistent,
    PersistentState as PersistentState,
)
from equistein.training.negatives._replay_buffer import ReplayBuffer as ReplayBuffer
