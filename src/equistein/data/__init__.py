"""Loading data."""

from equistein.data._array_files import (
    as_particles as as_particles,
    DataError as DataError,
    has_labels as has_labels,
    read_labels as read_labels,
    read_points as read_points,
)
from equistein.data._cache import (
    cache_folder as cache_folder,
    cached_array as cached_array,
)
from equistein.data._idx import read_idx as read_idx
from equistein.data._image_folder import read_image_folder as read_image_folder
from equistein.data._labeled_images import (
    as_labeled as as_labeled,
    class_names as class_names,
    labeled_images as labeled_images,
    LabeledImages as LabeledImages,
)
from equistein.data._published_clouds import published_clouds as published_clouds
from equistein.data._qm9 import qm9_isomers as qm9_isomers, QM9Isomers as QM9Isomers
