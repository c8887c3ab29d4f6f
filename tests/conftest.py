import contextlib
import zlib

import jax
import jax.random as jr
import pytest

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")


@contextlib.contextmanager
def _as_users():
    with (
        jax.enable_x64(False),
        jax.numpy_dtype_promotion("standard"),
        jax.numpy_rank_promotion("allow"),
    ):
        yield


@pytest.fixture(scope="session")
def as_users():
    """What runs a block as users run it: in the default precision and promotion."""
    return _as_users


@pytest.fixture
def single_precision():
    """Run a test as users run it: in the default precision and promotion."""
    with _as_users():
        yield


@pytest.fixture(autouse=True, scope="module")
def _forget_compiled_code():
    """Free what a module compiled: a process can map only so much code, then dies.

    What one traced in single precision is not used by another in double, either.
    """
    yield
    jax.clear_caches()


@pytest.fixture
def key(request):
    """Return a key derived from the test's name: repeatable, and never shared."""
    return jr.key(zlib.crc32(request.node.nodeid.encode()))
