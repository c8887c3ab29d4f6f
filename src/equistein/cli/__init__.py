"""The command line."""

from equistein.cli._main import main as main
