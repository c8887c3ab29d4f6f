"""The distance from the origin."""

from equistein._gate import gate
from equistein._numbers import check_positive
from equistein._types import Features, Point
from equistein.features._base import (
    AbstractFeatures,
    smooth_norm,
    smooth_norm_laplacian,
    SMOOTHED,
)
from equistein.groups import Orthogonal


@gate
class Radius(AbstractFeatures):
    r"""The distance from the origin, $F(x) = \sqrt{|x|^2 + \epsilon^2}$.

    Constant on the orbits of O(d), for points of shape `(d,)` with $d \ge 2$.

    Args:
        epsilon: The length below which F is smoothed, in the units of the points.

    Raises:
        ValueError: If `epsilon` is not positive.
    """

    epsilon: float

    def __init__(self, epsilon: float = 1e-2):
        check_positive("Radius", meaning=SMOOTHED, epsilon=epsilon)
        self.epsilon = float(epsilon)

    def __call__(self, point: Point) -> Features:
        self.group(point.shape)
        return smooth_norm(point, self.epsilon)[None]

    def laplacian(self, point: Point) -> Features:
        return smooth_norm_laplacian(self(point), point.shape[-1], self.epsilon)

    def group(self, shape: tuple[int, ...]) -> Orthogonal:
        if len(shape) != 1:
            raise ValueError(
                f"Radius needs points of shape (d,), but got points of shape {shape}. "
                "For several particles use SortedDistances(species)."
            )
        return Orthogonal(shape[0])
