"""Energies that are linear in invariant features."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein._check_arguments import check_arguments
from equistein._products import matmul
from equistein._types import Point, Scalar
from equistein.energies._base import AbstractEnergy, Evaluation, freeze
from equistein.energies._joint import check_class
from equistein.features import AbstractFeatures, PairBasis
from equistein.groups import AbstractGroup

_WALL = 100.0  # kT, where a distance is outside by as much as its range


@check_arguments
class LinearEnergy(AbstractEnergy):
    r"""An energy that is linear in invariant features, $E(x) = E_0(x) + c \cdot F(x)$.

    `es.fit_linear` finds the coefficients by one solve. With classes each has its own,

    $$E_y(x) = E_0(x) + c_y \cdot F(x) - b_y, \qquad
      p(y | x) = \mathrm{softmax}(-E_y(x)), \qquad E(x) = -\log \sum_y e^{-E_y(x)}.$$

    Args:
        features: The features F.
        base: The known part $E_0$, such as `KnownEnergy` or another fit; None is 0.
            It has the symmetry of the features, and no gradient reaches its weights.
        coefficients: $c$, or a row for each class, to evaluate or train it without
            `fit_linear`.
        biases: The bias $b_y$ of each class; None without classes.
    """

    features: AbstractFeatures
    base: AbstractEnergy | None = None
    _: dataclasses.KW_ONLY
    coefficients: Float[Array, "*class feature"] | None = None
    biases: Float[Array, " class"] | None = None

    def __check_init__(self):
        rows = () if self.biases is None else self.biases.shape
        if self.coefficients is not None and self.coefficients.shape[:-1] != rows:
            raise ValueError(
                "LinearEnergy needs `coefficients` of shape (feature,), or (class, "
                f"feature) with as many `biases`, but got {self.coefficients.shape}."
            )

    def __call__(self, point: Point) -> Scalar:
        return self.evaluate(point).energy

    def evaluate(self, point: Point) -> Evaluation:
        if self.coefficients is None:
            raise ValueError(
                "This LinearEnergy has no `coefficients` yet: take the `energy` that "
                "es.fit_linear returns, or give some, such as zeros."
            )
        if self.biases is None:
            total = self.features.dot(self.coefficients, point)
        else:
            values = self.features(point)
            total = matmul(self.coefficients.astype(values.dtype), values)
        if self.base is not None:
            total = total + freeze(self.base)(point)
        if self.biases is None:
            return Evaluation(total)
        logits = self.biases.astype(point.dtype) - total
        return Evaluation(-jax.nn.logsumexp(logits), logits)

    def group(self, shape: tuple[int, ...]) -> AbstractGroup:
        return self.features.group(shape)

    def num_classes(self, shape: tuple[int, ...]) -> int | None:
        return None if self.biases is None else len(self.biases)

    def condition(self, label: Any) -> "LinearEnergy":
        if self.biases is None or self.coefficients is None:
            return super().condition(label)  # type: ignore[return-value]
        check_class(label, len(self.biases))
        return LinearEnergy(
            self.features, self.base, coefficients=self.coefficients[label]
        )

    def with_coefficients(
        self, coefficients: np.ndarray, biases: np.ndarray | None = None
    ) -> "LinearEnergy":
        """Return it with other coefficients."""
        return LinearEnergy(
            self.features, self.base, coefficients=jnp.asarray(coefficients, float),
            biases=None if biases is None else jnp.asarray(biases, float),
        )  # fmt: skip


class PairWall(eqx.Module):
    r"""A log density that keeps each distance within, or near, the range of the data.

    $$\log p(x) = -100 \sum_{ij} \bigl( \delta_{ij} / (b_{ij} - a_{ij}) \bigr)^2$$

    with $\delta$ how far a distance is outside the range $[a, b]$ of its pair: what
    lies far beyond is unlikely, whatever functions that end there add up to.
    """

    basis: PairBasis  # whose distances, in its order
    least: tuple[float, ...]  # of each pair
    most: tuple[float, ...]

    def __call__(self, point: Point) -> Scalar:
        distances = self.basis.distances(point)
        least, most = (jnp.asarray(x, point.dtype) for x in (self.least, self.most))
        outside = jnp.maximum(jnp.maximum(least - distances, distances - most), 0)
        width = most - least + self.basis.epsilon
        return -_WALL * jnp.sum((outside / width) ** 2)
