"""Sums over exchangeable labels, for too many permutations to enumerate."""

import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from equistein._check_arguments import check_arguments
from equistein._numbers import check_integers, check_positive
from equistein._products import matmul
from equistein._types import Features, Key, Point
from equistein.features._base import AbstractFeatures
from equistein.groups import AbstractGroup, Permutations


@check_arguments
class SumsOverLabels(AbstractFeatures):
    r"""Waves summed over the labels, and the coordinates without labels.

    $$F_m(x) = \sqrt{2 / M} \sum_i \cos(\omega_m \cdot x_i + b_m)$$

    with random frequencies $\omega_m \sim \mathcal N(0, I / \ell^2)$ and phases $b_m$.
    With many waves $F(x) \cdot F(y)$ is $\sum_{ij} e^{-|x_i - y_j|^2 / 2 \ell^2}$. Take
    as many waves as coordinates, or more. The cost is that of a sum over n labels,
    where an exact average takes $2^n$ terms.

    Args:
        group: The permutations of the labels.
        num_features: The number M of waves.
        scale: The length $\ell$, that of the gaps between labels.
        key: The source of the frequencies and phases.
        width: The number of coordinates of each label.

    Raises:
        ValueError: If `group` is not `Permutations` with one axis of labels in each
            part, or a number is not positive.

    References:
        Rahimi and Recht (2007), Random features for large-scale kernel machines; Zaheer
        et al. (2017), Deep sets.
    """

    permutations: Permutations
    frequencies: Float[Array, "feature width"]
    phases: Float[Array, " feature"]

    def __init__(
        self,
        group: Permutations,
        num_features: int,
        scale: float,
        key: Key,
        *,
        width: int = 1,
    ):
        if not group.labels.are_separate:
            raise ValueError(
                "SumsOverLabels needs `group`, Permutations of labels with one axis "
                f"each, but got {group!r}."
            )
        check_integers("SumsOverLabels", num_features=num_features, width=width)
        check_positive("SumsOverLabels", scale=scale)
        frequency_key, phase_key = jr.split(key)
        self.permutations = group
        self.frequencies = jr.normal(frequency_key, (num_features, width)) / scale
        self.phases = jr.uniform(phase_key, (num_features,), maxval=2 * jnp.pi)

    def __call__(self, point: Point) -> Features:
        waves = self._summed(jnp.cos(self._angles(point)))
        return jnp.concatenate([waves, point.ravel()[self._places(point)[1]]])

    def laplacian(self, point: Point) -> Features:
        squares = jnp.sum(self.frequencies.astype(point.dtype) ** 2, axis=1)
        sums = -squares * self._summed(jnp.cos(self._angles(point)))
        rest = len(self._places(point)[1])
        return jnp.concatenate([sums, jnp.zeros(rest, point.dtype)])

    def group(self, shape: tuple[int, ...]) -> AbstractGroup:
        self.permutations.check_shape(shape)
        size = self._places(jnp.zeros(shape))[0].shape[1]
        if size != self.frequencies.shape[1]:
            raise ValueError(
                f"SumsOverLabels needs `width`, the number of coordinates of a label, "
                f"{size} in points of shape {shape}, but got "
                f"{self.frequencies.shape[1]}."
            )
        return self.permutations

    def _angles(self, point: Point) -> Float[Array, "label feature"]:
        self.group(point.shape)
        labels = point.ravel()[self._places(point)[0]]
        waves = self.frequencies.astype(point.dtype)
        return matmul(labels, waves.T) + self.phases.astype(point.dtype)[None]

    def _summed(self, waves: Float[Array, "label feature"]) -> Features:
        return (2 / waves.shape[1]) ** 0.5 * jnp.sum(waves, axis=0)

    def _places(self, point: Point):
        return self.permutations.labels.blocks(point.size)
