"""Posteriors with a symmetry: mixtures, hidden units, overlapping signals."""
