import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from group_registry import sample
from kernel_registry import (
    Cauchy,
    every_kernel_costly_ones_slow,
    every_ruled_kernel,
    KERNELS,
    moved,
    RULED,
    stein_force,
)
from registries import classes_of, normal

from equistein.features import Radius
from equistein.groups import InvarianceError, PointCloud
from equistein.kernels import (
    AbstractAverage,
    AbstractBandwidth,
    AbstractKernel,
    Equivariant,
    IMQ,
    Invariant,
    measured_bandwidth,
    Moments,
    RBF,
)

measured = eqx.filter_jit(measured_bandwidth)


@every_ruled_kernel
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_rule_gives_a_bandwidth_and_the_kernel_takes_it(make, group, shape, dtype, key):
    kernel, x = make(), normal(key, (9, *shape), dtype)
    assert isinstance(kernel.bandwidth, AbstractBandwidth)
    bandwidth = measured(kernel, x)
    assert bandwidth.dtype == dtype
    assert 0.05 < bandwidth < 5
    fixed = kernel.with_bandwidth(bandwidth)
    assert fixed.bandwidth == bandwidth
    assert measured_bandwidth(fixed, x) == bandwidth
    if group is not None:  # distances are between orbits
        y = moved(group, sample(group, key, 9), x)
        again = measured(kernel, y)
        assert np.allclose(again, bandwidth, rtol=1e-4)


@every_kernel_costly_ones_slow
def test_a_kernel_has_a_bandwidth_and_takes_another(make, shape, key):
    kernel, x = make(0.7), 0.5 * normal(key, (4, *shape))  # which interact
    other = kernel.with_bandwidth(jnp.asarray(0.5))
    if isinstance(kernel, Moments):
        assert kernel.bandwidth == 1.0
        assert other is kernel
        return
    assert kernel.bandwidth == 0.7
    assert other.bandwidth == 0.5
    expected = stein_force(make(jnp.asarray(0.5)), x, x, -x)
    assert np.allclose(stein_force(other, x, x, -x), expected, atol=1e-12)
    assert not np.allclose(stein_force(make(0.7), x, x, -x), expected, atol=1e-3)


@every_ruled_kernel
def test_a_kernel_with_a_rule_asks_for_particles(make, group, shape, key):
    del group
    x = normal(key, (2, *shape))
    with pytest.raises(ValueError, match="needs particles"):
        make().matrix(x[0], x[1])


@pytest.mark.parametrize(
    "name",
    [
        "c4 of clouds",
        "o3",
        "invariant c4",
        "distances",
        "e2",
        "se3",
        "gradient of distances",
        "moments",
    ],
)
def test_symmetric_kernel_accepts_its_targets_alone(name, key):
    make, _, shape = KERNELS[name]
    kernel, x = make(0.7), normal(key, (8, *shape))
    ramp = jnp.arange(float(x[0].size)).reshape(shape)
    kernel.check(lambda x: -jnp.sum(x**2), x)
    with pytest.raises(InvarianceError, match="not invariant"):
        kernel.check(lambda x: jnp.sum(ramp * x), x)


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (KERNELS["c4"][0], (3,)),
        (KERNELS["so3"][0], (2,)),
        (KERNELS["so3"][0], (4, 3)),
        (KERNELS["radius in the plane"][0], (4, 2)),
        (KERNELS["distances"][0], (4, 2)),
        (KERNELS["distances"][0], (6,)),
        (KERNELS["invariant c4"][0], (3,)),
        (KERNELS["e2"][0], (4, 2)),
        (KERNELS["e2"][0], (3, 3)),
        (KERNELS["se3"][0], (9,)),
        (KERNELS["gradient of distances"][0], (4, 3)),
        (KERNELS["gradient of the radius"][0], (4, 2)),
        (KERNELS["moments"][0], (2, 2)),
    ],
)
def test_shapes_that_do_not_fit_are_refused(make, shape):
    with pytest.raises(ValueError, match="points of shape"):
        make(0.7).project(jnp.ones(shape))


def test_kernels_that_lack_a_part_are_refused():
    cloud, x = PointCloud((0, 0), 2), jnp.ones(3)
    for wrap in (Equivariant, Invariant):
        with pytest.raises(ValueError, match="num_samples"):
            wrap(IMQ(0.2), cloud)
        with pytest.raises(ValueError, match="num_samples"):
            wrap(RBF(0.2), cloud, num_samples=0, key=jr.key(0))
        with pytest.raises(ValueError, match="`key`"):
            wrap(RBF(0.2), cloud, num_samples=4)
    with pytest.raises(ValueError, match=r"call kernel\.at\(particles\) first"):
        Moments(Radius()).matrix(x, x)


def test_every_kernel_rule_and_average_is_in_the_registry():
    kernels = [make(0.7) for make, _, _ in KERNELS.values()]
    assert {type(kernel) for kernel in kernels} - {Cauchy} == classes_of(AbstractKernel)
    rules = {type(make().bandwidth) for make, _, _ in RULED.values()}
    assert rules == classes_of(AbstractBandwidth)
    averages = {type(k.average) for k in kernels if isinstance(k, Equivariant)}
    assert averages == classes_of(AbstractAverage)
