"""Particle systems sampled from their energy alone."""
