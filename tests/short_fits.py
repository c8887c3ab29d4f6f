"""Fits in one call, as tests write them."""

import equistein as es
from equistein.training import InMemory, Optimization


def fit(
    key, energy, data, objective, *, epoch_batches=None, labels=None, optimizer=None,
    ema=0.995, precision=None, rollback=None, **options,
):  # fmt: skip
    """Fit, with the parts of a source and of an optimization as arguments."""
    if epoch_batches is not None:
        data, labels = InMemory(data, labels, epoch_batches), None
    more = {} if rollback is None else {"rollback": rollback}
    how = Optimization(optimizer, ema=ema, precision=precision, **more)
    return es.fit(key, energy, data, objective, labels=labels, optimizer=how, **options)
