"""Averages over a group, which make a radial kernel symmetric."""
