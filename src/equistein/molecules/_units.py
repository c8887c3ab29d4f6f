"""Units of energies of molecules."""

BOLTZMANN = 8.617333262e-5
"""The Boltzmann constant in eV / K."""
