"""How weights are updated: the optimizer, the running mean, precision, roll-backs."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
import optax

from equistein._gate import gate
from equistein._numbers import check_integers, check_positive
from equistein.samplers import canonical_optimizer

Precision = Literal["bfloat16", "tensorfloat32", "float32"]
"""How a GPU or a TPU may round the factors of a product."""

_LEARNING_RATE = 2e-3


@gate
@dataclasses.dataclass(frozen=True, kw_only=True)
class RollBack:
    """When a fit returns to its last good state, and how often.

    An epoch is discarded if an energy or a weight is not finite, or an energy is beyond
    the limit. The fit continues from the last good state, with half the steps of the
    optimizer and of the sampler, and new randomness.

    Attributes:
        max_rollbacks: How often, before the fit gives up.
        energy_limit: The size of an energy from which on a fit is diverging.
    """

    max_rollbacks: int = 3
    energy_limit: float = 1e6

    def __post_init__(self):
        check_integers("RollBack", least=0, max_rollbacks=self.max_rollbacks)
        check_positive("RollBack", energy_limit=self.energy_limit)

    def trouble(self, infos: Mapping[str, Any], row: Mapping[str, float]) -> str | None:
        """Return why an epoch must be discarded, or None."""
        if not np.all(infos["is_finite"]):
            return "an energy or a weight was not finite"
        largest = row.get("largest_energy", 0.0)
        if largest > self.energy_limit:
            return f"an energy reached {largest:.3g}, beyond `energy_limit`"
        return None

    def verdict(self, events: list[dict]) -> str:
        """Return why a fit gives up."""
        return (
            f"The fit diverged {len(events)} times, at last in epoch "
            f"{events[-1]['epoch']}, where {events[-1]['reason']}; `max_rollbacks` "
            f"allows {self.max_rollbacks}. Take a smaller learning rate or step size "
            "of the sampler, a larger `regularization`, or a smaller gradient clip."
        )


@gate
@dataclasses.dataclass(frozen=True)
class Optimization:
    """How the weights are updated.

    Args:
        optimizer: An Optax transformation of the gradient of all weights; None is
            `adam` from 2e-3 down over all updates.
        ema: The decay of the running mean of the weights, which is the result; 0 takes
            the last weights.
        precision: How products of networks round their factors on a GPU or a TPU:
            `float32` not at all; `tensorfloat32` to 11 bits; `bfloat16` to 8 or more.
            None is JAX's own setting. Kernels, groups and steerable convolutions are
            never rounded.
        rollback: When the fit goes back, and how often.

    Raises:
        ValueError: If `ema` or `precision` is out of range.
    """

    optimizer: optax.GradientTransformation | None = None
    _: dataclasses.KW_ONLY
    ema: float = 0.995
    precision: Precision | None = None
    rollback: RollBack = RollBack()

    def __post_init__(self):
        if not 0 <= self.ema < 1:
            raise ValueError(
                f"`Optimization` needs 0 <= `ema` < 1, but got {self.ema!r}."
            )

    def transformation(self, num_updates: int) -> optax.GradientTransformation:
        """Return the optimizer of so many updates; equal ones are the same object."""
        if self.optimizer is None:
            return adam(_LEARNING_RATE, num_updates)
        return canonical_optimizer(self.optimizer)


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

    Equal arguments return the same object, which is compiled once.

    Args:
        learning_rate: The largest learning rate.
        num_updates: The number of updates over which it falls to 1 % along a cosine.
        warm_up: The number of updates over which it rises from 0.
        gradient_clip: The largest norm of the gradient of all weights.
        factors: Multiples of the first learning rate by the update at which each
            begins, instead of the cosine; `{}` keeps it.

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
    if factors is None:
        rate = optax.cosine_decay_schedule(learning_rate, num_updates, alpha=0.01)
    else:
        steps, before = {}, 1.0
        for update, factor in sorted(factors.items()):
            steps[update], before = factor / before, factor
        rate = optax.piecewise_constant_schedule(learning_rate, steps)
    return canonical_optimizer(
        optax.chain(
            optax.clip_by_global_norm(gradient_clip), optax.adam(_warmed(rate, warm_up))
        )
    )


def _warmed(rate: optax.Schedule, warm_up: int) -> optax.Schedule:
    return lambda count: rate(count) * jnp.minimum((count + 1) / (warm_up + 1), 1)
