import contextlib
import gc
import os
import pathlib
import zlib

import jax
import jax.random as jr
import jaxtyping
import pytest

# Workers share out the cores: the threads of two on the same ones wait for each other.
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "gw")[2:]
if WORKER and hasattr(os, "sched_setaffinity"):
    cores = sorted(os.sched_getaffinity(0))
    step = int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    os.sched_setaffinity(0, cores[int(WORKER) % len(cores) :: step])

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")


def pytest_collection_finish():
    """Leave what was imported to itself: looking for its garbage costs a tenth."""
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


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


def _num_mappings():
    """How many pieces of memory this process maps; None where it cannot be known."""
    try:
        return pathlib.Path("/proc/self/maps").read_bytes().count(b"\n")
    except OSError:
        return None


@pytest.fixture(autouse=True, scope="module")
def _forget_compiled_code():
    """Free what was compiled when it is much: a process can map only so many pieces.

    Until then modules share it. Linux allows 65 530 pieces, and then ends the process.
    """
    yield
    num = _num_mappings()
    if num is None or num > 40_000:
        jax.clear_caches()


@contextlib.contextmanager
def _counted():
    names, active = [], [True]

    def note(event, duration, **about):
        if active[0] and event == "/jax/core/compile/backend_compile_duration":
            names.append(about.get("fun_name"))

    jax.monitoring.register_event_duration_secs_listener(note)
    yield names
    active[0] = False


@pytest.fixture(scope="session")
def counted():
    """What lists the programs that are compiled in a block."""
    return _counted


@pytest.fixture
def key(request):
    """Return a key derived from the test's name: repeatable, and never shared."""
    return jr.key(zlib.crc32(request.node.nodeid.encode()))


@pytest.fixture
def unchecked():
    """Turn the type checker off: show what a user sees who has none."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)
