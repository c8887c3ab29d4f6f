"""What the tests of registries share."""

import jax
import jax.random as jr
import numpy as np
import pytest


def classes_of(base, package=None):
    """Return the classes of a package, the interface's own, that are built from it."""
    package = package or base.__module__.rsplit(".", 1)[0]
    known = [base]
    for cls in known:  # grows as we walk
        known += cls.__subclasses__()
    ours = {cls for cls in known if cls.__module__.startswith(package)}
    return {cls for cls in ours if not cls.__name__.startswith("Abstract")}


def normal(key, shape, dtype=np.float64):
    """Return normal numbers of a key; `jr.normal` compiles for each shape."""
    rng = np.random.default_rng(np.asarray(jr.key_data(key)))
    return jax.device_put(rng.normal(size=shape).astype(dtype))


def some_slow(rows, slow):
    """Return the rows of a registry as parameters, the costly ones marked slow.

    A list of names gives the names, a registry its values; the names are the ids.
    """
    assert set(slow) <= set(rows), "a costly row that is not in the registry"
    values = rows if isinstance(rows, dict) else {name: name for name in rows}
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else (value,)),
            id=name,
            marks=[pytest.mark.slow] if name in slow else [],
        )
        for name, value in values.items()
    ]
