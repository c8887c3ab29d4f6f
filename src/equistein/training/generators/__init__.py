"""How new points are drawn from a learned energy."""
