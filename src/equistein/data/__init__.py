"""Loading data."""

from equistein.data._read import (
    as_particles as as_particles,
    DataError as DataError,
    read_labels as read_labels,
    read_points as read_points,
)
