"""Loading data."""

from equistein.data._array_files import (
    as_particles as as_particles,
    DataError as DataError,
    map_points as map_points,
    read_image_folder as read_image_folder,
    read_labels as read_labels,
    read_points as read_points,
    stack_molecules as stack_molecules,
    unused_arrays as unused_arrays,
    write_image_folder as write_image_folder,
)
from equistein.data._cache import (
    cache_folder as cache_folder,
    CACHE_VARIABLE as CACHE_VARIABLE,
    cached_array as cached_array,
    DATA_VARIABLE as DATA_VARIABLE,
    enable_compilation_cache as enable_compilation_cache,
    published_clouds as published_clouds,
)
from equistein.data._dataset import (
    Dataset as Dataset,
    PREVIEW_SIZE as PREVIEW_SIZE,
    spread_rows as spread_rows,
)
from equistein.data._qm9 import qm9_isomers as qm9_isomers, QM9Isomers as QM9Isomers
from equistein.data._summary import (
    COVALENT as COVALENT,
    DataSummary as DataSummary,
    DataWarning as DataWarning,
    describe as describe,
)
from equistein.data._tables import (
    is_table as is_table,
    read_table as read_table,
    Table as Table,
    TABLES as TABLES,
    write_table as write_table,
)
from equistein.data._trajectories import (
    read_frames as read_frames,
    write_frames as write_frames,
)
