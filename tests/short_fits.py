"""Fits in one call, as tests write them, and what they compare of them."""

import equinox as eqx
import jax
import numpy as np

import equistein as es
from equistein.training import InMemory, Optimization


def fit(
    key, energy, data, objective, *, epoch_batches=None, labels=None, optimizer=None,
    ema=0.995, precision=None, rollback=(), **options,
):  # fmt: skip
    """Fit, with the parts of a source and of an optimization as arguments."""
    if epoch_batches is not None:
        data, labels = InMemory(data, labels, epoch_batches), None
    how = Optimization(optimizer, ema=ema, precision=precision, **dict(rollback))
    return es.fit(key, energy, data, objective, labels=labels, optimizer=how, **options)


def same(first, second):
    """Whether two trees hold the same arrays, bit for bit; NaN is itself."""
    first, second = (eqx.filter(tree, eqx.is_array_like) for tree in (first, second))
    equal = lambda a, b: np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True)
    return jax.tree.all(jax.tree.map(equal, first, second))


def stop_after(epoch):
    """Return a callback that interrupts a fit."""

    def stop(row):
        if row["epoch"] == epoch:
            raise KeyboardInterrupt

    return stop
