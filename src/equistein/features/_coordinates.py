"""Radii, coordinates, periodic or not, and several feature maps as one."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein._check_arguments import check_arguments
from equistein._numbers import check_periods, check_positive
from equistein._types import Features, Point, Scalar
from equistein.features._base import AbstractFeatures, smooth_norm, SMOOTHED
from equistein.groups import AbstractGroup, Orthogonal, PointCloud, Trivial


@check_arguments
class Radius(AbstractFeatures):
    r"""The distance from the origin, $F(x) = \sqrt{|x|^2 + \epsilon^2}$.

    Constant on the orbits of O(d), for points of shape `(d,)` with $d \ge 2$.

    Args:
        epsilon: The length below which F is smoothed, in the units of the points.
    """

    epsilon: float

    def __init__(self, epsilon: float = 1e-2):
        check_positive("Radius", meaning=SMOOTHED, epsilon=epsilon)
        self.epsilon = float(epsilon)

    def __call__(self, point: Point) -> Features:
        self.group(point.shape)
        return smooth_norm(point, self.epsilon)[None]

    def group(self, shape: tuple[int, ...]) -> Orthogonal:
        if len(shape) != 1:
            raise ValueError(
                f"Radius needs points of shape (d,), but got points of shape {shape}. "
                "For several particles use SortedDistances(species)."
            )
        return Orthogonal(shape[0])


@check_arguments
class RadiusOfGyration(AbstractFeatures):
    r"""The radius of gyration of n particles, all of the same mass, about their mean c.

    $$F(x) = \sqrt{\tfrac1n \sum_i |x_i - c|^2 + \epsilon^2}, \quad \epsilon = 10^{-4}$$

    Constant on the orbits of `PointCloud`, with all particles alike.
    """

    def __call__(self, point: Point) -> Features:
        self.group(point.shape)
        gaps = point - jnp.mean(point, axis=0, keepdims=True)
        return smooth_norm(gaps.ravel() / len(point) ** 0.5, 1e-4)[None]

    def group(self, shape: tuple[int, ...]) -> PointCloud:
        group = PointCloud((0,) * shape[0], shape[-1])
        group.check_shape(shape)
        return group


@check_arguments
class Coordinates(AbstractFeatures):
    """The flattened coordinates of a point of any shape, $F(x) = x$."""

    def __call__(self, point: Point) -> Features:
        return point.ravel()

    def group(self, shape: tuple[int, ...]) -> Trivial:
        return Trivial()


@check_arguments
class Periodic(AbstractFeatures):
    r"""Coordinates that wrap around a circle of circumference $P$.

    The features put each circle into a plane, without stretching it,

    $$F(x) = \Bigl(r \cos \tfrac xr,\; r \sin \tfrac xr\Bigr), \qquad r = P / 2 \pi,$$

    and keep the other coordinates: cosines, then sines, then the others. Samplers move
    unwrapped coordinates, in which a periodic density is smooth; `wrap` is for reading.
    For particles in a periodic box the periods are its sides.

    Args:
        periods: The periods P > 0 along the last axis of a point, infinite where it
            is not periodic.
    """

    periods: tuple[float, ...]

    def __init__(self, periods: Any):
        self.periods = check_periods("Periodic", periods)

    def wrap(self, point: Point) -> Point:
        """Return the point with its coordinates from 0 to their periods."""
        wraps, periods = self.circles(point)
        return jnp.where(wraps, point % periods, point)

    def __call__(self, point: Point) -> Features:
        wraps, periods = (constant.ravel() for constant in self.circles(point))
        radii, x = periods[wraps] / (2 * jnp.pi), point.ravel()
        angles = x[wraps] / radii
        circles = radii * jnp.cos(angles), radii * jnp.sin(angles)
        return jnp.concatenate([*circles, x[~wraps]])

    def group(self, shape: tuple[int, ...]) -> Trivial:
        if not shape or shape[-1] != len(self.periods):
            raise ValueError(
                f"Periodic with {len(self.periods)} `periods` takes points of shape "
                f"(..., {len(self.periods)}), but got points of shape {shape}. Give "
                "one period for each entry of the last axis, or inf."
            )
        return Trivial()

    def circles(self, like: Array) -> tuple[np.ndarray, Float[Array, "*batch dim"]]:
        """Return which coordinates wrap, and the periods, 1 for those that do not."""
        self.group(like.shape)
        wraps = np.isfinite(self.periods)
        periods = np.where(wraps, self.periods, 1)
        wraps, periods = (np.broadcast_to(z, like.shape) for z in (wraps, periods))
        return wraps, jnp.asarray(periods, like.dtype)


@check_arguments
class Concatenated(AbstractFeatures):
    """The features of several maps, constant on the orbits of the smallest group."""

    parts: tuple[AbstractFeatures, ...]

    def __init__(self, *parts: AbstractFeatures):
        if not parts:
            raise ValueError("Concatenated needs at least one feature map.")
        self.parts = parts

    def __call__(self, point: Point) -> Features:
        return jnp.concatenate([part(point) for part in self.parts])

    def laplacian(self, point: Point) -> Features:
        return jnp.concatenate([part.laplacian(point) for part in self.parts])

    def derivatives(self, point: Point) -> tuple[Float[Array, "feature dim"], Features]:
        pairs = [part.derivatives(point) for part in self.parts]
        jacobian, laplacian = map(jnp.concatenate, zip(*pairs, strict=True))
        return jacobian, laplacian

    def dot(self, coefficients: Float[Array, " feature"], point: Point) -> Scalar:
        rows = jnp.split(coefficients, self._ends(point.shape))
        pairs = zip(self.parts, rows, strict=True)
        return jnp.sum(jnp.stack([part.dot(row, point) for part, row in pairs]))

    def unbounded(self, coefficients: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        rows = np.split(coefficients, self._ends(shape))
        pairs = zip(self.parts, rows, strict=True)
        return np.concatenate([part.unbounded(row, shape) for part, row in pairs])

    def held_coefficients(self, shape: tuple[int, ...]) -> np.ndarray:
        return np.concatenate([part.held_coefficients(shape) for part in self.parts])

    def row_size(self, shape: tuple[int, ...]) -> int:
        return sum(part.row_size(shape) for part in self.parts)

    def penalties(self, shape: tuple[int, ...]) -> np.ndarray:
        return np.concatenate([part.penalties(shape) for part in self.parts])

    def _ends(self, shape: tuple[int, ...]) -> list[int]:
        return np.cumsum([part.size(shape) for part in self.parts])[:-1].tolist()

    def group(self, shape: tuple[int, ...]) -> AbstractGroup:
        groups = [part.group(shape) for part in self.parts]
        for group in groups:
            if all(other.contains(group) for other in groups):
                return group
        raise ValueError(
            f"The parts of Concatenated must share their group, but have {groups}."
        )
