"""Densities learned from points: in the plane, and of particle systems."""
