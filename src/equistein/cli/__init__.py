"""The command line, `equistein`."""

from equistein.cli._main import main as main
