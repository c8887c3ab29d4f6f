"""The squared error to known energies."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from equistein._types import Key, Scalar
from equistein.energies import AbstractEnergy
from equistein.training._batch import Batch
from equistein.training.objectives._base import AbstractObjective, Info


class SquaredError(AbstractObjective[AbstractEnergy]):
    r"""The mean of $(E(x) - e)^2$ over the points of a batch whose energy is known.

    Labels are known energies $e$, and NaN where an energy is unknown.

    References:
        Jaini, Holdijk and Welling (2021), appendix D.2.
    """

    def init(self, key: Key, energy: AbstractEnergy, data: Batch) -> PyTree:
        """Check the labels.

        Raises:
            ValueError: If they are no energies.
        """
        if data.labels is None:
            raise ValueError(
                "`labels` are missing: SquaredError needs the known energy of each "
                "data point, with NaN where it is unknown."
            )
        values = np.asarray(data.labels)
        if not np.issubdtype(values.dtype, np.floating):
            raise ValueError(
                "SquaredError needs `labels` that are known energies, floating point, "
                f"but got {values.dtype}: take CrossEntropy() for classes."
            )
        if np.isinf(values).any() or np.isnan(values).all():
            raise ValueError(
                "`labels` must be known energies, with NaN where they are unknown, but "
                f"{'some are infinite' if np.isinf(values).any() else 'all are NaN'}."
            )

    def loss(
        self, key: Key, energy: AbstractEnergy, state: PyTree, batch: Batch
    ) -> tuple[Scalar, PyTree, Info]:
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
