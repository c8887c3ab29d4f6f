"""Molecules learned and generated."""
