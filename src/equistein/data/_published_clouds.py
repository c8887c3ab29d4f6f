"""Published samples in a local folder, for comparison."""

import numpy as np

from equistein.data._array_files import as_particles, DataError, read_points
from equistein.data._cache import local_file


def published_clouds(path: str, num_particles: int, dim: int) -> np.ndarray | None:
    """Return the clouds in a file of the folder `$EQUISTEIN_DATA`, centered.

    Args:
        path: The file's path in the folder, such as `dw4/fixed_DW4.npy`.
        num_particles: The number of particles of a cloud.
        dim: The dimension of space; rows are cut into particles of it.

    Returns:
        An array `(n, particle, dim)`, or None where the folder or the file is missing.

    Raises:
        DataError: If the file is there and does not hold clouds.
    """
    file = local_file(path)
    if file is None:
        return None
    clouds = as_particles(read_points(file), dim)
    if clouds.shape[1] != num_particles:
        raise DataError(
            f"{file} must hold clouds of {num_particles} particles, but they have "
            f"{clouds.shape[1]}."
        )
    return clouds - clouds.mean(axis=1, keepdims=True)
