"""Samples of the model that contrastive divergence sets against the data."""
