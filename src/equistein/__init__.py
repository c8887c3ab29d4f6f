"""Sample and learn probability densities that have a symmetry."""
