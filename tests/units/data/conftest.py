import struct

import numpy as np
import pytest


@pytest.fixture
def array():
    return np.arange(24, dtype=np.uint8).reshape(2, 3, 4)


@pytest.fixture
def idx(array):
    """The array as the content of an IDX file."""
    head = struct.pack(">BBBB", 0, 0, 8, array.ndim)
    return head + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()
