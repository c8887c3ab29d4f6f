"""Loading data."""

from equistein.data._read import (
    as_particles as as_particles,
    DataError as DataError,
    read_points as read_points,
)
