"""Training for a time that is given, not for a number of batches."""

import dataclasses
import time

import jax
import jax.numpy as jnp

from equistein._types import Key, Particles
from equistein.models import Model
from equistein.training import adam, Batch, Fitted, Trainer

_EPOCH = 10  # batches


def fit_within(
    key: Key,
    model: Model,
    data: Particles,
    seconds: float,
    learning_rate: float,
    first: int = 0,
) -> tuple[Fitted, int]:
    """Fit a model in as many batches as take so long; return their number too.

    What is counted is the time of all processors. Compiling does not count.

    Args:
        key: The source of randomness.
        model: The model; its learning rate falls over all batches.
        data: The data, stacked on axis 0.
        seconds: The processor time.
        learning_rate: Adam's, at first.
        first: The batches of a first phase, which take another time than the rest.
    """
    early = -(-first // _EPOCH)
    spent, each = _seconds_of_epochs(key, model, data, early)
    epochs = early + max(2, round((seconds - spent) / each))
    model = dataclasses.replace(
        model, num_epochs=epochs, epoch_batches=_EPOCH,
        optimizer=adam(learning_rate, epochs * _EPOCH),
    )  # fmt: skip
    return model.fit(key, data), epochs * _EPOCH


def _seconds_of_epochs(
    key: Key, model: Model, data: Particles, early: int
) -> tuple[float, float]:
    """Return how long the first epochs take together, and each one after them."""
    trainer = Trainer(
        model.objective, model.optimizer, model.batch_size, _EPOCH, model.ema
    )
    everything = Batch(data, None, jnp.arange(len(data)))
    state = trainer.init(key, model.energy, everything)
    jax.block_until_ready(trainer.epoch(state, data))  # compiled
    times = [time.process_time()]
    for _ in range(early + 1):
        state, _ = jax.block_until_ready(trainer.epoch(state, data))
        times.append(time.process_time())
    return times[-2] - times[0], max(times[-1] - times[-2], 1e-6)
