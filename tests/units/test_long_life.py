"""Long runs and many checkpoints do not fill the memory."""

import ctypes
import gc
import pathlib

import jax.numpy as jnp
import numpy as np
import pytest

import equistein as es

MOST = 40 * 2**20  # bytes, of what an allocator keeps


def memory():
    """Return the bytes of memory that this process has now, without what is free.

    What earlier tests have freed goes back to the system first, or hides new arrays.
    """
    told, libc = pathlib.Path("/proc/self/statm"), ctypes.CDLL(None)
    if not (told.exists() and hasattr(libc, "malloc_trim")):
        pytest.skip("the memory of a process is told by Linux and its C library only")
    gc.collect()
    libc.malloc_trim(0)
    return int(told.read_text().split()[1]) * 4096


@pytest.mark.slow
def test_a_million_steps_need_no_more_memory_than_ten_thousand():
    run = lambda num: es.run(
        0, es.Langevin(0.1), lambda x: -0.5 * jnp.sum(x**2), jnp.ones((8, 2)),
        num_steps=num,
    )  # fmt: skip
    run(10_000)
    before = memory()
    samples = run(1_000_000)
    assert samples.num_steps == 1_000_000
    assert memory() - before < MOST


@pytest.mark.slow
def test_what_fills_the_memory_is_seen():
    """The broken twin, after as much has been freed."""
    kept = [np.ones(2**17) for _ in range(100)]
    kept.clear()
    before = memory()
    for _ in range(100):
        kept.append(np.ones(2**17))
    assert memory() - before > MOST
