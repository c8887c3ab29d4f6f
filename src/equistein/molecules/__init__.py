"""Molecules: files in and out."""

from equistein.molecules._xyz import (
    Molecule as Molecule,
    read_xyz as read_xyz,
    write_xyz as write_xyz,
    XYZError as XYZError,
)
