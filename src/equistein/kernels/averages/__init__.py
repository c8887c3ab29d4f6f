"""Averages over a group: what makes a radial kernel symmetric."""
