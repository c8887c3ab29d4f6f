"""All kernels, and what their tests share."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from registries import normal, some_slow

from equistein.features import (
    PairHistogram,
    Periodic,
    Radius,
    RandomFeatures,
    SortedDistances,
)
from equistein.groups import (
    Cyclic,
    Dihedral,
    ImageRotations,
    Orthogonal,
    Permutations,
    PointCloud,
    Product,
    SignedPermutations,
    Signs,
    SpecialOrthogonal,
    TorusTranslations,
)
from equistein.kernels import (
    AbstractBandwidth,
    AbstractScalarKernel,
    Equivariant,
    Gradient,
    IMQ,
    Invariant,
    Median,
    Moments,
    PeriodicRBF,
    Pullback,
    RBF,
)


class Cauchy(AbstractScalarKernel):
    """A user's own kernel: no more than its values."""

    bandwidth: float | jax.Array | AbstractBandwidth

    def __call__(self, x, y):
        if isinstance(self.bandwidth, AbstractBandwidth):
            raise ValueError("A bandwidth rule needs particles.")
        return 1 / (1 + jnp.sum((x - y) ** 2) / self.bandwidth**2)


_HAAR = {"num_samples": 3, "key": jr.key(1)}
_CLOUDS = {
    "e2": PointCloud((0, 0, 1), 2),
    "se2": PointCloud((0, 0, 1), 2, reflections=False),
    "e3": PointCloud((0, 0, 1), 3),
    "se3": PointCloud((0, 0, 1), 3, reflections=False),
}
_HISTOGRAM = PairHistogram((0, 0, 1), reach=4.0, num_centers=5)
_PARTS = (((2,), (0,)), ((1,), ()), ((2, 2), (1,)))
_SUMS = RandomFeatures(Permutations(3), 12, lengths=(1.0, 1.0))
_PERIODS = Periodic([3.0, 3.0, np.inf])


def periodic(h):
    return PeriodicRBF(h, periodic=_PERIODS)


def averaged(group, shape, base=RBF):
    """Return the row of an average over a group."""
    return lambda h: Equivariant(base(h), group), group, shape


def along(wrap, base, features, shape):
    """Return the row of a kernel along features."""
    return lambda h: wrap(base(h), features), features.group(shape), shape


KERNELS = {  # a kernel, its group and shape: adding a kernel means adding a line here
    "rbf": (RBF, None, (3,)),
    "imq": (IMQ, None, (3,)),
    "c4": averaged(Cyclic(4), (2,)),
    "c4 of clouds": averaged(Cyclic(4), (2, 2)),
    "d5": averaged(Dihedral(5), (2,)),
    "images": averaged(ImageRotations(), (3, 3, 1)),
    "so2": averaged(SpecialOrthogonal(2), (2,)),
    "o2": averaged(Orthogonal(2), (2,)),
    "so3": averaged(SpecialOrthogonal(3), (3,)),
    "o3": averaged(Orthogonal(3), (3,)),
    "haar cloud": (
        lambda h: Equivariant(RBF(h), PointCloud((0, 1, 1), 2), **_HAAR), None, (3, 2)
    ),
    "by its values alone": (Cauchy, None, (3,)),
    "invariant haar cloud": (
        lambda h: Invariant(RBF(h), PointCloud((0, 1, 1), 2), **_HAAR), None, (3, 2)
    ),
    "invariant c4": (lambda h: Invariant(RBF(h), Cyclic(4)), None, (2,)),
    "radius in the plane": along(Pullback, RBF, Radius(), (2,)),
    "distances": along(Pullback, IMQ, SortedDistances((0, 1, 2)), (3, 2)),
    "like distances": along(Pullback, RBF, SortedDistances((0, 0, 0, 1)), (4, 2)),
    **{name: averaged(group, (3, group.dim)) for name, group in _CLOUDS.items()},
    "histogram": along(Pullback, RBF, _HISTOGRAM, (3, 2)),
    "gradient of the radius": along(Gradient, RBF, Radius(), (3,)),
    "gradient of distances": along(Gradient, IMQ, SortedDistances((0, 1, 2)), (3, 3)),
    "gradient of a histogram": along(Gradient, RBF, _HISTOGRAM, (3, 2)),
    "labels": averaged(Permutations(3), (3, 2)),
    "labels of parts": averaged(Permutations(2, _PARTS), (7,)),
    "signs": averaged(Signs(2), (4,)),
    "signed labels": averaged(SignedPermutations(2), (2, 2)),
    "product": averaged(Product(Permutations(3), Cyclic(4)), (3, 2)),
    "sums over labels": along(Pullback, RBF, _SUMS, (6,)),
    "periodic": (periodic, None, (3,)),
    "labels that wrap": averaged(
        Permutations(2, (((2,), (0,)), ((1,), ()))), (3,), periodic
    ),
    "shifts": averaged(TorusTranslations(_PERIODS.periods), (3,), periodic),
    "moments": (
        lambda h: Moments(_HISTOGRAM).at(h * normal(jr.key(2), (9, 3, 2))),
        PointCloud((0, 0, 1), 2),
        (3, 2),
    ),
}  # fmt: skip
COSTLY = (  # whose forces take seconds to compile
    "like distances", "haar cloud", "e3", "se3", "histogram", "gradient of distances",
    "gradient of a histogram", "labels of parts", "signs", "signed labels", "product",
    "sums over labels", "labels that wrap", "moments",
)  # fmt: skip
_SHAPED = {name: (make, shape) for name, (make, _, shape) in KERNELS.items()}
every_kernel = pytest.mark.parametrize(
    ("make", "shape"), _SHAPED.values(), ids=_SHAPED.keys()
)
every_kernel_costly_ones_slow = pytest.mark.parametrize(
    ("make", "shape"), some_slow(_SHAPED, COSTLY)
)
EXACT = {name: value for name, value in KERNELS.items() if value[1] is not None}
every_exact_kernel = pytest.mark.parametrize(
    ("make", "group", "shape"), EXACT.values(), ids=EXACT.keys()
)


RULED = {
    "rbf": (lambda: RBF(), None, (3,)),
    "by its values alone": (lambda: Cauchy(Median()), None, (3,)),
    "c4": (lambda: Equivariant(RBF(), Cyclic(4)), Cyclic(4), (2,)),
    "so3": (
        lambda: Equivariant(RBF(), SpecialOrthogonal(3)), SpecialOrthogonal(3), (3,)
    ),
    "invariant": (lambda: Invariant(RBF(), Cyclic(4)), Cyclic(4), (2,)),
    "radius": (lambda: Pullback(RBF(), Radius()), Orthogonal(3), (3,)),
    **{
        name: (lambda group=group: Equivariant(RBF(), group), group, (3, group.dim))
        for name, group in _CLOUDS.items()
    },
    "gradient": (
        lambda: Gradient(RBF(), SortedDistances((0, 0, 1))), _CLOUDS["e2"], (3, 2)
    ),
}  # fmt: skip
every_ruled_kernel = pytest.mark.parametrize(
    ("make", "group", "shape"), RULED.values(), ids=RULED.keys()
)


def points_and_scores(key, shape, dtype=jnp.float64):
    """Return targets, sources and scores, of the same sizes in all tests."""
    keys = jr.split(key, 3)
    return tuple(
        normal(k, (num, *shape), dtype) for k, num in zip(keys, (19, 5, 5), strict=True)
    )


@eqx.filter_jit
def moved(group, elements, points):
    """Return each point moved by its element."""
    return jax.vmap(group.act)(elements, points)


@eqx.filter_jit
def stein_force(kernel, targets, sources, scores):
    return kernel.stein_force(targets, sources, scores)
