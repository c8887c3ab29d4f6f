"""Samplers on analytic densities in the plane and in space."""
