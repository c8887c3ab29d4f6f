"""Cross-entropy: the classes of a joint energy."""

import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import PyTree

from equistein._gate import gate
from equistein._types import Key, Scalar
from equistein.energies import AbstractEnergy
from equistein.training._batch import Batch
from equistein.training._labels import check_classes
from equistein.training.objectives._base import AbstractObjective, Info


@gate
class CrossEntropy(AbstractObjective[AbstractEnergy]):
    r"""The mean of $-\log p(y | x)$ over the labelled points of a batch.

    Labels are classes from 0 on, and -1 where a class is unknown: such points do not
    count. A batch without labels gives 0.

    References:
        Jaini, Holdijk and Welling (2021), equation loss-JEM.
    """

    def init(self, key: Key, energy: AbstractEnergy, data: Batch) -> PyTree:
        """Check that the energy has classes, and the data labels.

        Raises:
            ValueError: If it has none, or the labels do not fit.
        """
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

    def loss(
        self, key: Key, energy: AbstractEnergy, state: PyTree, batch: Batch
    ) -> tuple[Scalar, PyTree, Info]:
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
