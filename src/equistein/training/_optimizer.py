"""What moves the weights."""

import functools

import jax.numpy as jnp
import optax

from equistein.training._config import FitConfig, num_epochs_of


@functools.lru_cache(maxsize=64)  # one object a setting: it is compiled once
def weight_optimizer(
    config: FitConfig, batches_an_epoch: int
) -> optax.GradientTransformation:
    """Return what moves the weights."""
    if config.learning_rate_epochs:
        previous = (1.0, *config.learning_rate_factors)
        steps = {
            epoch * batches_an_epoch: factor / before
            for epoch, factor, before in zip(
                config.learning_rate_epochs, config.learning_rate_factors, previous,
                strict=False,
            )
        }  # fmt: skip
        rate = optax.piecewise_constant_schedule(config.learning_rate, steps)
    else:
        total = num_epochs_of(config) * batches_an_epoch
        rate = optax.cosine_decay_schedule(config.learning_rate, total, alpha=0.01)

    def warmed(count):
        rise = jnp.minimum((count + 1) / (config.warm_up + 1), 1)
        return rate(count) * rise

    return optax.chain(
        optax.clip_by_global_norm(config.gradient_clip), optax.adam(warmed)
    )
