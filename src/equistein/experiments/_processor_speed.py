"""How fast a processor is at what experiments mostly do: products and exponentials."""

import functools
import time

import numpy as np

REFERENCE_SPEED = 121_000.0
"""That of a processor of the machine on which `_seconds.json` was measured."""

_SECONDS = 0.5
_SIZE = 64  # so small that a product keeps to one processor


@functools.cache
def processor_speed() -> float:
    """Return the rounds that one processor of this machine does in a second.

    Measured once, in half a second. A round is a product of two matrices of 64 rows and
    the exponentials of its entries, in single precision. Seconds are the processor's
    own, so that it does not matter what else the machine does.
    """
    rng = np.random.default_rng(0)
    values = rng.uniform(-0.1, 0.1, (_SIZE, _SIZE)).astype(np.float32)
    rounds, end, began = 0, time.perf_counter() + _SECONDS, time.process_time()
    while time.perf_counter() < end or rounds == 0:
        np.exp(values @ values)
        rounds += 1
    return rounds / max(time.process_time() - began, 1e-9)
