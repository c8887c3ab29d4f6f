"""Adam with a falling learning rate."""

import functools
from collections.abc import Mapping

import jax.numpy as jnp
import optax

from equistein._gate import gate
from equistein._numbers import check_integers, check_positive


@gate
def adam(
    learning_rate: float,
    num_updates: int,
    *,
    warm_up: int = 0,
    gradient_clip: float = 10.0,
    factors: Mapping[int, float] | None = None,
) -> optax.GradientTransformation:
    """Return Adam behind a clip of the gradient, with a learning rate that falls.

    The same arguments give the same object, which is compiled once.

    Args:
        learning_rate: The largest learning rate.
        num_updates: The number of updates over which it falls to 1 % along a cosine.
        warm_up: The number of updates over which it rises from 0.
        gradient_clip: The largest norm of the gradient of all weights.
        factors: What it is multiplied with from these updates on, compared with the
            start, instead of the cosine; `{}` keeps it.

    Raises:
        ValueError: If a number is not positive.
    """
    check_positive(
        "`adam`", learning_rate=learning_rate, num_updates=num_updates,
        gradient_clip=gradient_clip,
    )  # fmt: skip
    check_integers("`adam`", least=0, warm_up=warm_up)
    for update, factor in (factors or {}).items():
        if update < 1 or not 0 < factor < float("inf"):
            raise ValueError(
                "`adam` needs `factors`, positive numbers by the update (from 1 on) "
                f"that they begin at, but got {dict(factors or {})!r}."
            )
    steps = None if factors is None else tuple(sorted(factors.items()))
    return _adam(learning_rate, num_updates, warm_up, gradient_clip, steps)


@functools.lru_cache(maxsize=64)  # one object a setting: it is compiled once
def _adam(
    learning_rate: float,
    num_updates: int,
    warm_up: int,
    gradient_clip: float,
    factors: tuple[tuple[int, float], ...] | None,
) -> optax.GradientTransformation:
    if factors is None:
        rate = optax.cosine_decay_schedule(learning_rate, num_updates, alpha=0.01)
    else:
        before = (1.0, *(factor for _, factor in factors))
        steps = {
            update: factor / last
            for (update, factor), last in zip(factors, before, strict=False)
        }
        rate = optax.piecewise_constant_schedule(learning_rate, steps)

    def warmed(count):
        return rate(count) * jnp.minimum((count + 1) / (warm_up + 1), 1)

    return optax.chain(optax.clip_by_global_norm(gradient_clip), optax.adam(warmed))
