"""The command line."""

from equistein.cli._start import main as main
