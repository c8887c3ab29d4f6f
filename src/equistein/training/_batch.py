"""Data points with what is known of them."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from equistein._types import Scalar
from equistein.energies import AbstractEnergy, Evaluation

Labels = Int[Array, " point"] | Float[Array, " point"] | None


class Batch:
    """Data points, what is known of them, and which rows of the data they are.

    What an energy is at the points is computed once, however many objectives ask.

    Args:
        points: The points, stacked on axis 0.
        labels: The class or the known energy of each, or None.
        rows: Their numbers in the data.
        step_scale: What a sampler's steps are multiplied with, after roll-backs.
    """

    def __init__(
        self,
        points: Float[Array, "point *shape"],
        labels: Labels,
        rows: Int[Array, " point"],
        step_scale: Scalar | float = 1.0,
    ):
        self.points = points
        self.labels = labels
        self.rows = rows
        self.step_scale = jnp.asarray(step_scale, points.dtype)
        self._found: list[tuple[AbstractEnergy, Evaluation]] = []

    def evaluate(self, energy: AbstractEnergy) -> Evaluation:
        """Return an energy at all points."""
        for known, evaluation in self._found:
            if known is energy:
                return evaluation
        evaluation = jax.vmap(energy.evaluate)(self.points)
        self._found.append((energy, evaluation))
        return evaluation

    def moved_to(self, points: Float[Array, "point *shape"]) -> "Batch":
        """Return the same rows with other points, such as blurred ones."""
        return Batch(points, self.labels, self.rows, self.step_scale)
