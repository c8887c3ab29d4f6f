"""Losses of what is known of each point: its class, or its energy."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import optax

from equistein._gate import gate
from equistein._types import Key
from equistein.energies import AbstractEnergy
from equistein.training._batch import Batch, check_classes
from equistein.training._objectives import AbstractObjective, Loss


@gate
class CrossEntropy(AbstractObjective[AbstractEnergy]):
    r"""The mean of $-\log p(y | x)$ over the labelled points of a batch.

    Labels are classes from 0 on, and -1 where a class is unknown: such points do not
    count. A batch without labels gives 0.

    References:
        Jaini, Holdijk and Welling (2021), equation loss-JEM.
    """

    def init(self, key: Key, energy: AbstractEnergy, data: Batch) -> Any:
        num = energy.num_classes(data.points.shape[1:])
        if num is None:
            raise ValueError(
                f"CrossEntropy needs a JointEnergy, but got {type(energy).__name__}, "
                "which has no classes."
            )
        if data.labels is None:
            raise ValueError(
                "`labels` are missing: CrossEntropy needs the class of each data "
                "point, from 0 on, and -1 where it is unknown."
            )
        check_classes(np.asarray(data.labels), num)

    def loss(self, key: Key, energy: AbstractEnergy, state: Any, batch: Batch) -> Loss:
        logits, labels = batch.evaluate(energy).logits, batch.labels
        assert logits is not None
        assert labels is not None
        known = (labels >= 0).astype(logits.dtype)
        num = jnp.sum(known)
        losses = optax.softmax_cross_entropy_with_integer_labels(
            logits, jnp.maximum(labels, 0)
        )
        loss = jnp.sum(known * losses) / jnp.maximum(num, 1)
        guessed = jnp.argmax(logits, axis=1).astype(labels.dtype)
        right = jnp.sum(known * (guessed == labels).astype(logits.dtype))
        info = {
            "cross_entropy": jnp.where(num > 0, loss, jnp.nan),
            "accuracy": right / num,
            "num_labels": num,
        }
        return loss, state, info

    @property
    def uses_labels(self) -> bool:
        return True


class SquaredError(AbstractObjective[AbstractEnergy]):
    r"""The mean of $(E(x) - e)^2$ over the points of a batch whose energy is known.

    Labels are known energies $e$, and NaN where an energy is unknown.

    References:
        Jaini, Holdijk and Welling (2021), appendix D.2.
    """

    def init(self, key: Key, energy: AbstractEnergy, data: Batch) -> Any:
        if data.labels is None:
            raise ValueError(
                "`labels` are missing: SquaredError needs the known energy of each "
                "data point, with NaN where it is unknown."
            )
        values = np.asarray(data.labels)
        is_float = np.issubdtype(values.dtype, np.floating)
        if not is_float or np.isinf(values).any() or np.isnan(values).all():
            raise ValueError(
                "SquaredError needs `labels` that are known energies, floating point "
                "and finite, with NaN where they are unknown but not in all, but got "
                f"{values.dtype}, {np.isinf(values).sum()} infinite and "
                f"{np.isnan(values).sum()} NaN. Take CrossEntropy() for classes."
            )

    def loss(self, key: Key, energy: AbstractEnergy, state: Any, batch: Batch) -> Loss:
        assert batch.labels is not None
        known = jnp.isfinite(batch.labels)
        values = batch.evaluate(energy).energy
        gaps = jnp.where(known, values - jnp.where(known, batch.labels, 0), 0)
        num = jnp.sum(known.astype(values.dtype))
        loss = jnp.sum(gaps**2) / jnp.maximum(num, 1)
        value = jnp.where(num > 0, loss, jnp.nan)
        return loss, state, {"squared_error": value, "num_labels": num}

    @property
    def uses_labels(self) -> bool:
        return True
